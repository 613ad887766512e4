//! Models that say what they were told to say, on loopback, and keep every request: a test asks what the model received.
//!
//! A turn is said once, in our words; the agent's own file spells it with that agent's tool names, and one file for each
//! dialect puts it on the wire. Nothing here knows what a scenario expects.

mod anthropic;
mod chat;
mod gemini;
mod http;
mod responses;

use std::borrow::Cow;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::{Request, Response};
use serde_json::{Value, json};

use crate::Fault;

/// What the model says when its script is over.
const LAST_WORD: &str = "That is all.";

/// What most of them answer when too many ask.
const BUSY: &str = "503 Service Unavailable";

/// What all of them answer when one asks too often.
const LIMITED: &str = "429 Too Many Requests";

/// One turn of the model.
#[derive(Debug, Clone)]
pub enum Turn {
    /// Calls, several of them at once.
    Calls(Vec<Step>),
    /// Calls of the agent's own tools, and of those that an MCP server offers, made after a command that runs outside the
    /// agent: a person or another program changes something between two turns.
    AfterCommand {
        /// A command line, run in the project; none where nothing happens outside.
        outside: Option<String>,
        /// The calls.
        calls: Vec<TurnCall>,
    },
    /// One call of a tool that an MCP server offers.
    Served(&'static str, Value),
    /// Words, which end the agent's run.
    Say(&'static str),
    /// No turn at all.
    Refused(Refusal),
}

/// Why there is no turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Too many others ask at the same time.
    Overloaded,
    /// This one asks too often; it may come back in two seconds.
    Limited,
    /// This one has had its share, and gets more in an hour.
    UsedUp,
    /// Nobody answers, and nobody says why.
    Silent,
}

/// One tool call, in our words.
#[derive(Debug, Clone)]
pub enum Step {
    /// Run a command line.
    Shell(String),
    /// Look at a file of the project.
    Read(String),
    /// Replace one line in a file of the project.
    Edit {
        /// Its name in the project.
        file: String,
        /// What stands there.
        old: String,
        /// What is to stand there.
        new: String,
    },
    /// Write a whole file of the project.
    Write {
        /// Its name in the project.
        file: String,
        /// Its content.
        text: String,
    },
    /// A call of the shell's tool that lacks the command.
    Malformed,
}

/// One call of a turn: of a tool of the agent's own, or of one that an MCP server offers.
#[derive(Debug, Clone)]
pub enum TurnCall {
    /// The agent's own.
    Own(Step),
    /// A server's.
    Served(String, Value),
}

/// One command line.
pub fn shell(command: impl Into<String>) -> Turn {
    Turn::Calls(vec![Step::Shell(command.into())])
}

/// A look at one file.
pub fn read(file: &str) -> Turn {
    Turn::Calls(vec![Step::Read(file.to_owned())])
}

/// One replaced line.
pub fn edit(file: &str, old: &str, new: &str) -> Turn {
    Turn::Calls(vec![Step::Edit { file: file.to_owned(), old: old.to_owned(), new: new.to_owned() }])
}

/// One call without what it needs.
pub fn malformed() -> Turn {
    Turn::Calls(vec![Step::Malformed])
}

/// A tool call as an agent spells it.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool's name.
    pub name: Cow<'static, str>,
    /// What it is given.
    pub arguments: Arguments,
}

/// What a tool is given.
#[derive(Debug, Clone)]
pub enum Arguments {
    /// Named values.
    Named(Value),
    /// One text without a form, as Codex gives patches.
    Free(String),
}

impl ToolCall {
    /// A call with named values.
    pub fn named(name: impl Into<Cow<'static, str>>, arguments: Value) -> ToolCall {
        ToolCall { name: name.into(), arguments: Arguments::Named(arguments) }
    }
}

/// What a model answers to one request, ready to be put on the wire.
#[derive(Debug, Clone, Default)]
struct Reply {
    /// No two answers have the same: agents take answers with one id for parts of one.
    id: String,
    text: String,
    /// The calls with their ids.
    calls: Vec<(String, ToolCall)>,
    /// There is no answer.
    refusal: Option<Refusal>,
    /// What happens before it is given.
    outside: Option<OutsideCommand>,
}

/// A command that a person or another program runs while the agent waits for its model.
#[derive(Debug, Clone)]
pub struct OutsideCommand {
    /// The command line.
    pub line: String,
    /// Where it runs.
    pub folder: PathBuf,
}

impl OutsideCommand {
    fn run(&self) {
        let mut command = Command::new("bash");
        command.args(["-c", &self.line]).current_dir(&self.folder);
        // A script that states what cannot be is found by what the calls after it tell.
        let _status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Reply {
    fn say(text: impl Into<String>) -> Reply {
        Reply { text: text.into(), ..Reply::default() }
    }
}

/// How an agent and its model talk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions, and everything made after them.
    Chat,
    /// Google's `generateContent`.
    Gemini,
}

impl Dialect {
    fn answer(self, request: &Request, script: &Mutex<Script>) -> Response {
        match self {
            Dialect::Anthropic => anthropic::answer(request, script),
            Dialect::Responses => responses::answer(request, script),
            Dialect::Chat => chat::answer(request, script),
            Dialect::Gemini => gemini::answer(request, script),
        }
    }

    /// The key under which a request carries the conversation.
    fn conversation(self) -> &'static str {
        match self {
            Dialect::Anthropic | Dialect::Chat => "messages",
            Dialect::Responses => "input",
            Dialect::Gemini => "contents",
        }
    }

    /// Is this part of the conversation the model's own?
    fn is_own(self, part: &Value) -> bool {
        match self {
            Dialect::Anthropic | Dialect::Chat => part["role"] == "assistant",
            Dialect::Gemini => part["role"] == "model",
            Dialect::Responses => {
                part["role"] == "assistant"
                    || matches!(
                        part["type"].as_str(),
                        Some("function_call" | "custom_tool_call" | "reasoning")
                    )
            }
        }
    }
}

/// What is to be said, and what was received so far.
#[derive(Default)]
struct Script {
    turns: Vec<Reply>,
    next: usize,
    answered: usize,
    /// The calls of this script and of those before it: a session that goes on must not meet an id twice.
    calls: usize,
    /// The requests that asked for a turn, in order, and when they came.
    received: Vec<(Instant, Value)>,
}

fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next turn for a request that offers tools; one without tools is an aside (a title, a summary) and moves nothing.
fn take_turn(script: &Mutex<Script>, body: &Value, offers_tools: bool) -> Reply {
    let mut script = lock(script);
    script.answered += 1;
    let id = format!("scripted_{}", script.answered);
    if !offers_tools {
        return Reply { id, ..Reply::say("ok") };
    }
    script.received.push((Instant::now(), body.clone()));
    let turn = script.turns.get(script.next).cloned().unwrap_or_else(|| Reply::say(LAST_WORD));
    script.next += 1;
    drop(script);
    if let Some(outside) = &turn.outside {
        outside.run();
    }
    Reply { id, ..turn }
}

/// How OpenAI refuses.
fn openai_refusal(refusal: Refusal) -> Response {
    match refusal {
        Refusal::Overloaded => {
            let error = json!({"message": "The server is overloaded", "type": "server_error"});
            Response::refused(BUSY, &json!({ "error": error }))
        }
        Refusal::Limited => {
            Response::limited(&json!({"error": {"type": "tokens", "code": "rate_limit_exceeded",
            "message": "Rate limit reached for gpt-5.5 in organization org-tide on tokens per min (TPM): Limit 30000, \
                        Used 29500, Requested 1500. Please try again in 2s."}}))
        }
        Refusal::UsedUp => Response::refused(
            LIMITED,
            &json!({"error": {"type": "usage_limit_reached",
            "message": "The usage limit has been reached", "plan_type": "plus", "resets_at": in_an_hour()}}),
        ),
        Refusal::Silent => Response::silence(),
    }
}

/// The moment in an hour, in seconds since 1970.
fn in_an_hour() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs() + 60 * 60
}

/// A model that is listening.
pub struct Model {
    dialect: Dialect,
    port: u16,
    script: Arc<Mutex<Script>>,
    done: Arc<AtomicBool>,
}

impl Model {
    /// Begins to listen, with nothing to say yet.
    pub fn start(dialect: Dialect) -> Result<Model, Fault> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let model = Model { dialect, port, script: Arc::default(), done: Arc::default() };
        let (script, done) = (Arc::clone(&model.script), Arc::clone(&model.done));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                let script = Arc::clone(&script);
                thread::spawn(move || http::serve(&stream, |request| heard(dialect, request, &script)));
            }
        });
        Ok(model)
    }

    /// Gives it a new script, and forgets what it received before.
    pub fn rehearse(&self, turns: Vec<Spelled>) {
        let mut script = lock(&self.script);
        let (answered, mut count) = (script.answered, script.calls);
        let mut name = |call: ToolCall| {
            count += 1;
            (format!("call_scripted_{count:04}"), call)
        };
        let turns = turns.into_iter().map(|turn| match turn {
            Spelled::Say(text) => Reply::say(text),
            Spelled::Refused(why) => Reply { refusal: Some(why), ..Reply::default() },
            Spelled::Calls(calls) => {
                Reply { calls: calls.into_iter().map(&mut name).collect(), ..Reply::default() }
            }
            Spelled::AfterCommand(outside, calls) => {
                Reply { calls: calls.into_iter().map(&mut name).collect(), outside, ..Reply::default() }
            }
        });
        let turns = turns.collect();
        *script = Script { turns, answered, calls: count, ..Script::default() };
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What the model received, turn by turn.
    pub fn received(&self) -> Received {
        let script = lock(&self.script);
        let calls: Vec<Vec<String>> =
            script.turns.iter().map(|turn| turn.calls.iter().map(|(id, _)| id.clone()).collect()).collect();
        let after =
            |turn: usize| script.received.get(turn + 1).map(|(_, body)| self.news(body, &calls[turn]));
        Received {
            answers: (0..calls.len()).map_while(after).collect(),
            last: script
                .received
                .last()
                .map(|(_, body)| everything(&body[self.dialect.conversation()]))
                .unwrap_or_default(),
            pace: script.received.windows(2).map(|pair| pair[1].0 - pair[0].0).collect(),
        }
    }

    /// What this request tells about these calls, and whatever else came with it: all texts after the model's own words.
    fn news(&self, body: &Value, ids: &[String]) -> String {
        let parts = body[self.dialect.conversation()].as_array().map(Vec::as_slice).unwrap_or_default();
        let names_one = |part: &Value| {
            let text = part.to_string();
            ids.iter().any(|id| text.contains(id.as_str()))
        };
        // Not every agent gives the ids back; what follows the model's last words is then all that is new.
        let begin = parts
            .iter()
            .position(names_one)
            .or_else(|| parts.iter().rposition(|part| self.dialect.is_own(part)))
            .unwrap_or(0);
        let news = parts[begin..].iter().filter(|part| !self.dialect.is_own(part));
        news.map(everything).collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        // The listener wakes up once more and sees that it is over.
        let _woken = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn heard(dialect: Dialect, request: &Request, script: &Mutex<Script>) -> Response {
    match request.method.as_str() {
        "POST" => dialect.answer(request, script),
        // Lists of models, and whether anybody is there.
        _ => Response::json(&json!({"object": "list", "data": [], "models": []})),
    }
}

/// A turn with the agent's own tool names.
#[derive(Debug, Clone)]
pub enum Spelled {
    /// Calls at once.
    Calls(Vec<ToolCall>),
    /// Calls at once, after something happened outside.
    AfterCommand(Option<OutsideCommand>, Vec<ToolCall>),
    /// Words.
    Say(&'static str),
    /// No answer.
    Refused(Refusal),
}

/// What a model received in one run.
#[derive(Debug, Clone)]
pub struct Received {
    /// After each turn that was answered: all texts that came with the results.
    pub answers: Vec<String>,
    /// All texts of the last conversation.
    pub last: String,
    /// From each request for a turn to the next: the time that the agent took for what the turn asked.
    pub pace: Vec<Duration>,
}

/// Every text in a value, in its order.
fn everything(value: &Value) -> String {
    let mut texts = Vec::new();
    gather(value, &mut texts);
    texts.join("\n")
}

fn gather<'a>(value: &'a Value, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(parts) => parts.iter().for_each(|part| gather(part, texts)),
        Value::Object(parts) => parts.values().for_each(|part| gather(part, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// A conversation of one call and its result, as agents send it back.
    fn answered(dialect: Dialect, id: &str) -> Value {
        let tools = json!([{"name": "run", "functionDeclarations": []}]);
        match dialect {
            Dialect::Anthropic => json!({"tools": tools, "messages": [
                {"role": "user", "content": "begin"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "run", "input": {"own": "words"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "low water"}]},
                {"role": "system", "content": "a hint"}]}),
            Dialect::Chat => json!({"tools": tools, "messages": [
                {"role": "user", "content": "begin"},
                {"role": "assistant", "tool_calls": [{"id": id, "function": {"name": "run", "arguments": "own words"}}]},
                {"role": "tool", "tool_call_id": id, "content": "low water"},
                {"role": "user", "content": "a hint"}]}),
            Dialect::Responses => json!({"tools": tools, "input": [
                {"type": "message", "role": "user", "content": "begin"},
                {"type": "function_call", "call_id": id, "name": "run", "arguments": "own words"},
                {"type": "message", "role": "developer", "content": "a hint"},
                {"type": "function_call_output", "call_id": id, "output": "low water"}]}),
            // Gemini CLI does not give ids back in every version.
            Dialect::Gemini => json!({"tools": tools, "contents": [
                {"role": "user", "parts": [{"text": "begin"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "run", "args": {"own": "words"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "run", "response": {"output": "low water, a hint"}}}]}]}),
        }
    }

    fn post(model: &Model, path: &str, body: &str, how: &str) -> String {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, model.port())).unwrap();
        let head = format!("POST {path} HTTP/1.1\r\nHost: model.example\r\n{how}\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[track_caller]
    fn check(dialect: Dialect, path: &str) {
        let model = Model::start(dialect).unwrap();
        let call = ToolCall::named("run", json!({"line": "ls"}));
        model.rehearse(vec![Spelled::Calls(vec![call]), Spelled::Say("that was it")]);
        let aside = json!({"messages": [], "stream": true}).to_string();
        let first =
            json!({"tools": [{"name": "run", "functionDeclarations": []}], "stream": true}).to_string();
        let second = answered(dialect, "call_scripted_0001").to_string();

        post(&model, path, &aside, &format!("Content-Length: {}", aside.len()));
        let called = post(&model, path, &first, &format!("Content-Length: {}", first.len()));
        let in_chunks = format!("{:x}\r\n{second}\r\n0\r\n\r\n", second.len());
        let said = post(&model, path, &in_chunks, "Transfer-Encoding: chunked");

        assert!(called.contains("call_scripted_0001") && called.contains("run"), "{called}");
        assert!(said.contains("that was it"), "{said}");
        let received = model.received();
        assert_eq!(received.answers.len(), 1);
        let answer = &received.answers[0];
        assert!(answer.contains("low water") && answer.contains("a hint"), "{answer}");
        assert!(!answer.contains("words") && !answer.contains("begin"), "{answer}");
    }

    #[test]
    fn a_model_plays_its_turns_and_keeps_what_came_with_the_results() {
        check(Dialect::Anthropic, "/v1/messages?beta=true");
        check(Dialect::Responses, "/v1/responses");
        check(Dialect::Chat, "/v1/chat/completions");
        check(Dialect::Gemini, "/v1beta/models/scripted:streamGenerateContent?alt=sse");
    }
}
