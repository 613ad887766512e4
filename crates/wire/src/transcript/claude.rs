//! Claude Code transcripts (`~/.claude/projects/**/*.jsonl`).
//!
//! One line per message block. The model's calls stand in `assistant` lines, their results in `user` lines beside what
//! the person typed and what the client itself has to say; most other kinds of lines are the client's own bookkeeping.

use std::collections::HashMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor, value};
use serde_json::Value;
use unstuck_judge::{Call, Outcome};

use super::Use;
use super::pairing::{Answer, Made, Names, Pairing};
use crate::json::{WireError, read_object};
use crate::recorded::MAIN_AGENT;
use crate::scalar::WireText;
use crate::{time, wording};

/// One transcript.
#[derive(Debug, Default)]
pub(super) struct ClaudeReader {
    pub(super) calls: Pairing,
    seen_lines: Names,
    /// For each agent the answer its last call stood in, and that answer's round.
    answers: HashMap<String, (String, u64)>,
    pub(super) rounds: u64,
}

/// A line exactly as it stands in the file; the names are theirs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireLine {
    #[serde(rename = "type")]
    kind: Option<String>,
    uuid: Option<String>,
    session_id: Option<String>,
    timestamp: Option<String>,
    agent_id: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_compact_summary: bool,
    origin: Option<WireOrigin>,
    message: Option<WireMessage>,
    #[serde(default)]
    tool_use_result: WireDetails,
    tool_denial_kind: Option<String>,
}

#[derive(Deserialize)]
struct WireOrigin {
    kind: Option<String>,
}

#[derive(Deserialize)]
struct WireMessage {
    id: Option<String>,
    #[serde(default)]
    content: WireContent,
}

#[derive(Default)]
struct WireContent(Vec<WireBlock>);

#[derive(Deserialize, Default)]
struct WireBlock {
    #[serde(rename = "type")]
    kind: Option<String>,
    text: Option<WireText>,
    id: Option<String>,
    name: Option<String>,
    #[serde(default)]
    input: Value,
    tool_use_id: Option<String>,
    #[serde(default)]
    content: WireContent,
    is_error: Option<bool>,
}

/// The client's own view of a result. Its shape depends on the tool; only a shell's streams are of use.
#[derive(Deserialize, Default)]
struct WireStreams {
    stdout: Option<WireText>,
    stderr: Option<WireText>,
    interrupted: Option<bool>,
    /// There when the command runs on in the background; what that means stands in the result only.
    #[serde(rename = "backgroundTaskId")]
    background: Option<IgnoredAny>,
}

#[derive(Default)]
struct WireDetails(WireStreams);

impl ClaudeReader {
    pub(super) fn read(&mut self, line: &[u8]) -> Result<Use, WireError> {
        let line = read_object::<WireLine>(line)?;
        let is_message = matches!(line.kind.as_deref(), Some("assistant" | "user"));
        // Copies of messages stand in other kinds of lines, too; only these two are the conversation itself.
        let Some(message) = line.message.filter(|_| is_message) else { return Ok(Use::Ignored) };
        if let Some(uuid) = &line.uuid
            && !self.seen_lines.is_new(uuid)
        {
            return Ok(Use::Ignored);
        }
        if let Some(session) = &line.session_id {
            self.calls.name(session);
        }
        if let Some(cwd) = &line.cwd {
            self.calls.works_in(cwd);
        }
        let agent = match (line.is_sidechain, line.agent_id) {
            (true, Some(agent)) => agent,
            (true, None) => "sub".to_owned(),
            (false, _) => MAIN_AGENT.to_owned(),
        };
        let at = line.timestamp.as_deref().and_then(time::millis);
        if line.kind.as_deref() == Some("assistant") {
            self.make_calls(&agent, message, at);
            return Ok(Use::Taken);
        }
        let is_from_client = line.is_meta
            || line.is_compact_summary
            || line.origin.and_then(|origin| origin.kind).is_some_and(|kind| kind != "human");
        let (results, rest): (Vec<_>, Vec<_>) =
            message.content.0.into_iter().partition(|block| block.kind.as_deref() == Some("tool_result"));
        if !results.is_empty() {
            // The client's own view is of the one result of its line; with several it would be anybody's.
            let mut details = (results.len() == 1).then_some(line.tool_use_result.0);
            for result in results {
                let Some(id) = result.tool_use_id.clone() else { continue };
                let details = details.take().unwrap_or_default();
                self.calls.answer(&id, answer(result, details, line.tool_denial_kind.as_deref()), at);
            }
        } else if rest.iter().any(|block| block.says("[Request interrupted by user")) {
            self.calls.interrupted(&agent);
        } else if !is_from_client && agent == MAIN_AGENT && rest.iter().any(WireBlock::is_typed) {
            self.calls.person_spoke();
        }
        Ok(Use::Taken)
    }

    fn make_calls(&mut self, agent: &str, message: WireMessage, at: Option<u64>) {
        for block in message.content.0 {
            let (Some("tool_use"), Some(id), Some(name)) = (block.kind.as_deref(), block.id, block.name)
            else {
                continue;
            };
            // The blocks of one answer stand in lines of their own and share its id.
            let answer = message.id.clone().unwrap_or_else(|| id.clone());
            let round = match self.answers.get(agent) {
                Some((last, round)) if *last == answer => *round,
                Some(_) | None => {
                    let round = self.rounds;
                    self.rounds += 1;
                    self.answers.insert(agent.to_owned(), (answer, round));
                    round
                }
            };
            self.calls.make(Made {
                id,
                agent: agent.to_owned(),
                call: Call::new(name, block.input),
                at,
                round,
            });
        }
    }
}

impl WireBlock {
    fn says(&self, words: &str) -> bool {
        self.text.as_ref().is_some_and(|text| text.0.trim_start().starts_with(words))
    }

    /// Whether a person wrote this, rather than the client in the person's name.
    fn is_typed(&self) -> bool {
        match self.kind.as_deref() {
            Some("text") => !self.text.as_ref().is_some_and(|text| wording::is_from_client(&text.0)),
            // A picture or a document is put there by a person.
            Some(_) | None => true,
        }
    }
}

fn answer(result: WireBlock, details: WireStreams, denial: Option<&str>) -> Answer {
    let is_error = result.is_error.unwrap_or(false);
    let text = result.content.text();
    let mut merged = text.as_str();
    let is_stopped = is_error && text.contains("this call was stopped while running");
    let outcome = if details.interrupted == Some(true) || is_stopped {
        Outcome::Interrupted
    } else if denial.is_some() {
        Outcome::Denied
    } else if !is_error {
        Outcome::Succeeded
    } else {
        let (outcome, said) = wording::failure(&text);
        merged = said;
        outcome
    };
    let said_ok = Some(!is_error);
    match (details.stdout, details.stderr) {
        (Some(stdout), Some(stderr)) if !is_error && details.background.is_none() => Answer {
            outcome,
            said_ok,
            stdout: stdout.0.into_bytes(),
            stderr: stderr.0.into_bytes(),
            merged: Vec::new(),
        },
        _ => Answer { merged: merged.as_bytes().to_vec(), said_ok, ..Answer::silent(outcome) },
    }
}

impl WireContent {
    /// What was said, one part per line. What is no text is named by its kind.
    fn text(self) -> String {
        let parts = self.0.into_iter().map(|block| match block.text {
            Some(text) => text.0,
            None => format!("[{}]", block.kind.as_deref().unwrap_or("nothing")),
        });
        parts.collect::<Vec<_>>().join("\n")
    }
}

/// Content is a text, or a list of blocks.
impl<'de> Deserialize<'de> for WireContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireContent, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Vec<WireBlock>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of blocks")
            }
            fn visit_str<E>(self, text: &str) -> Result<Vec<WireBlock>, E> {
                let text = Some(WireText(text.to_owned()));
                Ok(vec![WireBlock { kind: Some("text".to_owned()), text, ..WireBlock::default() }])
            }
            fn visit_unit<E>(self) -> Result<Vec<WireBlock>, E> {
                Ok(Vec::new())
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<WireBlock>, A::Error> {
                Deserialize::deserialize(value::SeqAccessDeserializer::new(list))
            }
        }
        deserializer.deserialize_any(Either).map(WireContent)
    }
}

/// An object may hold a shell's streams; a text or a list says nothing that the result does not.
impl<'de> Deserialize<'de> for WireDetails {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<WireDetails, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = WireStreams;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tool's result")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WireStreams, A::Error> {
                Deserialize::deserialize(value::MapAccessDeserializer::new(map))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<WireStreams, A::Error> {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                Ok(WireStreams::default())
            }
            fn visit_str<E>(self, _: &str) -> Result<WireStreams, E> {
                Ok(WireStreams::default())
            }
            fn visit_bool<E>(self, _: bool) -> Result<WireStreams, E> {
                Ok(WireStreams::default())
            }
            fn visit_i64<E>(self, _: i64) -> Result<WireStreams, E> {
                Ok(WireStreams::default())
            }
            fn visit_u64<E>(self, _: u64) -> Result<WireStreams, E> {
                Ok(WireStreams::default())
            }
            fn visit_f64<E>(self, _: f64) -> Result<WireStreams, E> {
                Ok(WireStreams::default())
            }
            fn visit_unit<E>(self) -> Result<WireStreams, E> {
                Ok(WireStreams::default())
            }
        }
        deserializer.deserialize_any(Any).map(WireDetails)
    }
}
