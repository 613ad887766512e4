//! Plays a script twice, with and without us in between, and tells every difference that ought not to be.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::scripts::{self, Mask, Play, Step};
use super::session::{LONGEST_ANSWER, Session};
use super::{Ending, Tools};
use crate::Fault;
use crate::world::World;

/// When nothing came for so long, all has come.
const QUIET: Duration = Duration::from_millis(300);

/// What came of a script.
#[derive(Default)]
struct Heard {
    /// The handshake's answer, and one for each step that has one, as it came.
    answers: Vec<Option<String>>,
    /// Notifications and questions by their method, each in its order.
    others: BTreeMap<String, Vec<String>>,
    /// What was no frame of the protocol.
    noise: usize,
}

/// Plays it both ways.
pub fn with_and_without(play: &Play, tools: &Tools) -> Result<Ending, Fault> {
    if play.name == "fetch" && tools.no_python.is_none() {
        scripts::serve_pages()?;
    }
    let mut heard = Vec::new();
    for is_through in [false, true] {
        let world = World::new(&tools.unstuck)?;
        // The same place both times, since servers name it.
        let folder = std::env::temp_dir().join(format!("mcp-{}-{}", play.name, std::process::id()));
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        (play.prepare)(&folder)?;
        let words = match (play.words)(tools, &folder) {
            Ok(words) => words,
            Err(why) => return Ok(Ending::Skipped(why)),
        };
        let mut command = tools.command(&world, is_through, &words);
        command.env("MEMORY_FILE_PATH", folder.join("memory.jsonl"));
        let said = world.aside("stderr");
        command.stderr(File::create(&said)?);
        let played = perform(command, &(play.steps)(&folder)).map_err(|fault| {
            let which = if is_through { "through unstuck" } else { "directly" };
            let said = fs::read_to_string(&said).unwrap_or_default();
            let last: Vec<&str> = said.lines().rev().take(5).collect();
            format!("{which}: {fault}; it said last: {last:?}")
        });
        let steps = (play.steps)(&folder);
        fs::remove_dir_all(&folder)?;
        heard.push((played?, steps));
    }
    let [(direct, steps), (through, _)] =
        <[(Heard, Vec<Step>); 2]>::try_from(heard).map_err(|_| "two plays")?;
    let differences = differences(&steps, &direct, &through, play.masks);
    let count = |wanted: fn(&Step) -> bool| steps.iter().filter(|step| wanted(step)).count();
    match differences.is_empty() {
        false => Ok(Ending::Differs(differences)),
        true => Ok(Ending::Same(format!(
            "{} answers to the byte, {} failures with all they said, {} mistakes answered",
            count(|step| matches!(step, Step::Ask(..) | Step::Call(..) | Step::Progress(..))) + 1,
            count(|step| matches!(step, Step::Fails(..))),
            count(|step| matches!(step, Step::Mistaken(..))),
        ))),
    }
}

fn perform(command: std::process::Command, steps: &[Step]) -> Result<Heard, Fault> {
    let mut session = Session::start(command)?;
    let mut heard = Heard::default();
    let client = json!({"name": "chore", "version": "1.0.0"});
    let capabilities = json!({"sampling": {}, "elicitation": {}, "roots": {"listChanged": true}});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": client});
    session.send(&request(0, "initialize", &hello))?;
    let answer = heard.wait(&mut session, 0)?;
    heard.answers.push(Some(answer));
    session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    for (place, step) in steps.iter().enumerate() {
        let id = place as u64 + 1;
        let call = |name: &str, arguments: &Value| {
            request(id, "tools/call", &json!({"name": name, "arguments": arguments}))
        };
        let answer = match step {
            Step::Ask(method, params) => {
                session.send(&request(id, method, params))?;
                Some(heard.wait(&mut session, id)?)
            }
            Step::Call(name, arguments) | Step::Fails(name, arguments) | Step::Mistaken(name, arguments) => {
                session.send(&call(name, arguments))?;
                Some(heard.wait(&mut session, id)?)
            }
            Step::Progress(name, arguments) => {
                let mut frame = call(name, arguments);
                frame["params"]["_meta"] = json!({"progressToken": format!("token-{id}")});
                session.send(&frame)?;
                Some(heard.wait(&mut session, id)?)
            }
            Step::Cancelled(name, arguments) => {
                session.send(&call(name, arguments))?;
                heard.listen(&mut session, QUIET)?;
                let cancelled = json!({"requestId": id, "reason": "the tide turned"});
                session.send(
                    &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}),
                )?;
                heard.listen(&mut session, Duration::from_millis(2300))?;
                None
            }
            Step::Notify(method, params) => {
                session.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))?;
                None
            }
            Step::Settle => {
                heard.listen(&mut session, QUIET)?;
                None
            }
        };
        heard.answers.push(answer);
    }
    heard.listen(&mut session, QUIET)?;
    session.end();
    Ok(heard)
}

fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

impl Heard {
    /// Waits for the answer with this id; what else comes is kept, and questions are answered.
    fn wait(&mut self, session: &mut Session, id: u64) -> Result<String, Fault> {
        let end = Instant::now() + LONGEST_ANSWER;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line =
                session.line(left)?.ok_or_else(|| format!("there is no answer to request {id}"))?.to_vec();
            if let Some(answer) = self.take(session, &line, Some(id))? {
                return Ok(answer);
            }
        }
    }

    /// Takes what comes until nothing came for a while.
    fn listen(&mut self, session: &mut Session, quiet: Duration) -> Result<(), Fault> {
        while let Some(line) = session.line(quiet)?.map(<[u8]>::to_vec) {
            self.take(session, &line, None)?;
        }
        Ok(())
    }

    /// One line; returns it when it is the answer that is waited for.
    fn take(
        &mut self,
        session: &mut Session,
        line: &[u8],
        wanted: Option<u64>,
    ) -> Result<Option<String>, Fault> {
        let text = String::from_utf8_lossy(line).into_owned();
        let Ok(frame) = serde_json::from_slice::<Value>(line) else {
            self.noise += 1;
            return Ok(None);
        };
        match (frame["method"].as_str(), frame.get("id")) {
            (Some(method), id) => {
                if let Some(id) = id {
                    session.send(&json!({"jsonrpc": "2.0", "id": id, "result": reply(method)}))?;
                }
                self.others.entry(method.to_owned()).or_default().push(text);
                Ok(None)
            }
            (None, Some(id)) if wanted.is_some_and(|wanted| *id == wanted) => Ok(Some(text)),
            (None, Some(_)) => {
                self.others.entry("an answer that nobody waits for".to_owned()).or_default().push(text);
                Ok(None)
            }
            (None, None) => {
                self.noise += 1;
                Ok(None)
            }
        }
    }
}

/// What the client answers when it is asked.
fn reply(method: &str) -> Value {
    match method {
        "sampling/createMessage" => json!({"role": "assistant", "model": "scripted",
            "content": {"type": "text", "text": "It is low."}, "stopReason": "endTurn"}),
        "elicitation/create" => json!({"action": "decline"}),
        "roots/list" => json!({"roots": [{"uri": "file:///harbour", "name": "harbour"}]}),
        _ => json!({}),
    }
}

fn differences(steps: &[Step], direct: &Heard, through: &Heard, masks: &[Mask]) -> Vec<String> {
    let mut told = Vec::new();
    let pairs = direct.answers.iter().zip(&through.answers).skip(1).zip(steps);
    let hello = Step::Ask("initialize", json!({}));
    let first = (direct.answers.first().zip(through.answers.first()), &hello);
    let all = first.0.map(|pair| (pair, &hello)).into_iter().chain(pairs);
    for ((one, other), step) in all {
        let (Some(one), Some(other)) = (one, other) else { continue };
        if let Some(why) = difference(step, &masked(one, masks), &masked(other, masks)) {
            told.push(format!("{}: {why}", shortened(&format!("{step:?}"))));
            told.push(format!("    directly {}", shortened(one)));
            told.push(format!("    through  {}", shortened(other)));
        }
    }
    // Answers to nothing are let go, and said to be; a client need not see them.
    let kept = |heard: &Heard| -> Vec<(String, Vec<String>)> {
        let known = heard.others.iter().filter(|(method, _)| !method.starts_with("an answer"));
        known
            .map(|(method, all)| (method.clone(), all.iter().map(|one| masked(one, masks)).collect()))
            .collect()
    };
    let (one, other) = (kept(direct), kept(through));
    if one != other {
        told.push(format!("what came by itself: directly {}", shortened(&format!("{one:?}"))));
        told.push(format!("    through {}", shortened(&format!("{other:?}"))));
    }
    const TO_NOTHING: &str = "an answer that nobody waits for";
    let strange = |heard: &Heard| heard.others.get(TO_NOTHING).cloned().unwrap_or_default();
    let known = strange(direct);
    for one in strange(through).iter().filter(|one| !known.contains(one)) {
        told.push(format!("an answer came to nothing: {}", shortened(one)));
    }
    if through.noise > 0 {
        told.push(format!("{} lines were no frames", through.noise));
    }
    told
}

/// Why two answers to a step are not as they should be.
fn difference(step: &Step, direct: &str, through: &str) -> Option<String> {
    let read = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    match step {
        Step::Ask(..) | Step::Call(..) | Step::Progress(..) => {
            (direct != through).then(|| "it is not the same to the byte".to_owned())
        }
        Step::Fails(..) => kept_and_added(&read(direct), &read(through)),
        Step::Mistaken(..) => {
            let through = read(through);
            let text = through["result"]["content"][0]["text"].as_str().unwrap_or_default();
            match through["result"]["isError"] == true && !text.is_empty() {
                true => None,
                false => Some("it is no result that a model can act on".to_owned()),
            }
        }
        Step::Cancelled(..) | Step::Notify(..) | Step::Settle => None,
    }
}

/// A failure keeps all that the server said, and more may follow.
fn kept_and_added(direct: &Value, through: &Value) -> Option<String> {
    if let Some(error) = direct.get("error") {
        let message = error["message"].as_str().unwrap_or_default();
        return match through.to_string().contains(message) {
            true => None,
            false => Some("the server's error is lost".to_owned()),
        };
    }
    let (one, other) = (&direct["result"], &through["result"]);
    if one["isError"] != true {
        return Some("it ought to fail, and does not even directly".to_owned());
    }
    let parts = |result: &Value| result["content"].as_array().cloned().unwrap_or_default();
    let (own, all) = (parts(one), parts(other));
    if !all.starts_with(&own) || other["isError"] != true {
        return Some("the server's content is not its beginning".to_owned());
    }
    if all.len() <= own.len() {
        return Some("nothing was added".to_owned());
    }
    for (key, value) in one.as_object().into_iter().flatten().filter(|(key, _)| *key != "content") {
        let kept = match (value, &other[key]) {
            (Value::Object(own), Value::Object(all)) => {
                own.iter().all(|(key, value)| all.get(key) == Some(value))
            }
            (own, all) => own == all,
        };
        if !kept {
            return Some(format!("{key} is another"));
        }
    }
    None
}

fn masked(text: &str, masks: &[Mask]) -> String {
    let mut text = text.to_owned();
    for mask in masks {
        let mut done = String::new();
        let mut rest = text.as_str();
        while let Some((before, after)) = rest.split_once(mask.from) {
            done = done + before + mask.from;
            rest = after.find(mask.to).map_or(after, |end| {
                done.push('…');
                &after[end..]
            });
        }
        text = done + rest;
    }
    text
}

fn shortened(text: &str) -> String {
    match text.chars().count() > 600 {
        true => text.chars().take(600).chain(['…']).collect(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_another_each_time_is_masked() {
        let mask = Mask { from: "at ", to: "\"", why: "time" };
        assert_eq!(masked(r#"{"a":"at 06:12","b":"at 07"}"#, &[mask]), r#"{"a":"at …","b":"at …"}"#);
    }

    #[test]
    fn a_failure_keeps_all_and_may_add() {
        let said = |texts: &[&str], more: Value| {
            let content: Vec<Value> =
                texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            json!({"result": {"content": content, "isError": true, "structuredContent": more}})
        };
        let server = said(&["out of order"], json!({"code": 7}));
        let check = |through: &Value| kept_and_added(&server, through);
        assert_eq!(check(&said(&["out of order", "our words"], json!({"code": 7, "ok": false}))), None);
        assert!(check(&server).is_some(), "nothing was added");
        assert!(check(&said(&["our words", "out of order"], json!({"code": 7}))).is_some());
        assert!(check(&said(&["out of order", "our words"], json!({"code": 8}))).is_some());
    }
}
