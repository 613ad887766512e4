//! What must hold for any bytes.
//!
//! Each target is a plain function that panics where something does not hold, so that any fuzzer can drive it, and the
//! seeds run through it as ordinary tests.

// Some modules compile sources of other packages a second time. The tests in those sources run where they belong.
#![cfg(not(test))]

pub mod case;
mod cautions;
pub mod planted;
// The settings editor reads its files through it.
#[path = "../../crates/cli/src/regular_file.rs"]
#[allow(dead_code, clippy::duplicate_mod, reason = "the editor needs a part of it only")]
mod regular_file;
mod safe;
mod schema;
pub mod seeds;
mod settings;

use std::sync::LazyLock;

use case::Case;
pub use cautions::cautions;
pub use planted::planted;
pub use safe::safe;
pub use schema::schema;
use serde_json::{Map, Value, json};
pub use settings::settings;
use unstuck_judge::rules::{Stream, Table};
use unstuck_judge::shell::Script;
use unstuck_judge::{Call, Rules, fingerprint, nature};
use unstuck_wire::clean::{Cleaner, Secrets};
use unstuck_wire::hook::{self, Happened, Host, Reply, codex, generic};
use unstuck_wire::mcp::{
    self, Addition, EventStream, Framer, Glimpse, Id, Message, Piece, StreamStep, ToolCall, ToolResult,
};
use unstuck_wire::transcript::{self, Format, Reader};
use unstuck_wire::{failure, recorded};

/// A target, by the name that `cargo xtask fuzz` knows it by.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 14] = [
    ("diagnose", diagnose),
    ("fingerprints", fingerprints),
    ("shell", shell),
    ("rules", rules),
    ("wire", wire),
    ("hook", hook),
    ("clean", clean),
    ("events", events),
    ("frames", frames),
    ("cautions", cautions),
    ("settings", settings),
    ("safe", safe),
    ("schema", schema),
    ("planted", planted),
];

/// A regular expression is made when it is first needed; making it anew for each input would be all that is measured.
static BUILT_IN: LazyLock<Rules> = LazyLock::new(Rules::built_in);

/// Any output gets an answer, the same one however the output was cut on its way.
pub fn diagnose(data: &[u8]) {
    let case = Case::decode(data);
    let rules = &*BUILT_IN;
    let observation = case.observation();
    let whole = rules.diagnose(&observation);
    let mut reading = rules.read();
    for (stream, bytes) in [
        (Stream::Stdout, &observation.stdout),
        (Stream::Stderr, &observation.stderr),
        (Stream::Merged, &observation.merged),
    ] {
        case.pieces(bytes).for_each(|piece| reading.feed(stream, piece));
    }
    let pieced = rules.conclude(reading, &observation.call, observation.outcome, observation.http_status);
    assert_eq!(whole, pieced, "a diagnosis depends on how the output was cut");
    assert!((0.0..=1.0).contains(&whole.confidence), "confidence {} is no share", whole.confidence);
}

/// Any call has fingerprints and a nature, and the order of its keys does not matter to them.
pub fn fingerprints(data: &[u8]) {
    let observation = Case::decode(data).observation();
    let call = &observation.call;
    let turned = Call::new(call.tool.clone(), turned(call.input.clone()));
    assert_eq!(fingerprint::call(call), fingerprint::call(&turned), "the order of keys matters to the call");
    assert_eq!(
        fingerprint::intent(call),
        fingerprint::intent(&turned),
        "the order of keys matters to the intent"
    );
    assert_eq!(nature::of(call), nature::of(&turned), "the order of keys matters to the nature");
    let family = fingerprint::family(call);
    for line in String::from_utf8_lossy(&observation.stderr).lines() {
        let cause = fingerprint::cause(&family, unstuck_judge::Kind::Unknown, line);
        assert_eq!(
            cause,
            fingerprint::cause(&family, unstuck_judge::Kind::Unknown, line),
            "a cause changes by itself"
        );
    }
    let _ = (nature::moves_world(call), nature::waits(call), nature::targets(call), nature::approach(call));
}

/// The same value with the keys of every object in the opposite order.
fn turned(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(
            fields.into_iter().rev().map(|(key, value)| (key, turned(value))).collect::<Map<_, _>>(),
        ),
        Value::Array(items) => Value::Array(items.into_iter().map(turned).collect()),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

/// Any text is a script: it is parsed, and asked all there is to ask.
pub fn shell(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let script = Script::parse(&text);
    assert!(script.programs().all(|program| program.len() <= text.len()), "a program out of nowhere");
    let _ = (script.last().is_some(), script.hides_failure(), script.is_reader(), script.url_hosts().len());
}

/// Any text is a rule file: bad rows are named by their line, and the others can be used.
pub fn rules(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (table, errors) = Table::from_toml(&text);
    let lines = text.split('\n').count();
    for error in errors {
        assert!((1..=lines).contains(&error.line), "line {} of {lines}: {}", error.line, error.what);
    }
    let mut rules = Rules::built_in();
    rules.put_first(table);
    rules.diagnose(&Case::decode(data).observation());
}

/// Any line from outside is read or refused, in every format; a transcript never holds more calls than it could.
pub fn wire(data: &[u8]) {
    let lines = || data.split(|byte| *byte == b'\n');
    for line in lines() {
        let _ = (failure::read(line).is_ok(), recorded::read(line).is_ok(), generic::read(line).is_ok());
    }
    let _ = transcript::sniff(lines());
    for format in Format::ALL {
        let mut reader = Reader::new(format);
        for line in lines() {
            let _ = reader.read(line).is_ok();
        }
        let (calls, _) = reader.finish();
        assert!(calls.len() <= data.len(), "{} calls out of {} bytes", calls.len(), data.len());
    }
}

/// Any payload is read or refused at every door, and whatever is answered is one JSON object that never allows anything and
/// holds no control character.
pub fn hook(data: &[u8]) {
    let text = String::from_utf8_lossy(&data[..data.len().min(300)]);
    let input = json!({ "command": text });
    let replies = [
        Reply::tell(text.to_string()),
        Reply::Deny { reason: text.to_string() },
        Reply::Ask { reason: text.to_string() },
        Reply::Halt { reason: text.to_string(), table: text.to_string() },
        Reply::Rewrite { input: input.clone(), text: text.to_string() },
        Reply::Again { tool: text.to_string(), input, text: text.to_string() },
    ];
    for door in Host::ALL {
        let Ok(letter) = hook::read(*door, data) else { continue };
        assert!(!letter.session.is_empty() && !letter.agent.is_empty(), "nobody sent this");
        assert_eq!(letter.answer(&Reply::Silent), None, "silence is an answer");
        for answer in replies.iter().filter_map(|reply| letter.answer(reply)) {
            assert!(!answer.contains(char::is_control), "{answer:?}");
            let said: Value = serde_json::from_str(&answer).unwrap_or_default();
            let decisions =
                ["/decision", "/permission", "/permissionDecision", "/hookSpecificOutput/permissionDecision"];
            assert!(said.is_object(), "{answer}");
            assert!(
                decisions.iter().filter_map(|place| said.pointer(place)).all(|word| word != "allow"),
                "{answer}"
            );
        }
        for finished in letter.events.iter().filter_map(|event| match event {
            Happened::After(finished) => Some(finished),
            _ => None,
        }) {
            let mut told = finished.clone();
            codex::tell(&mut told, 1);
            assert_eq!(codex::wanted(&letter, &told), None, "a code that was told is still wanted");
        }
    }
    let _ = codex::exit_code(data, "call_1");
}

/// Any text becomes one that can be kept: bounded, without control characters, and the same when it is cleaned again.
pub fn clean(data: &[u8]) {
    let cleaner =
        Cleaner::new(Some("/home/ann"), [("X_API_TOKEN".to_owned(), "s3cr3t-v4lue-0f-it".to_owned())]);
    let text = String::from_utf8_lossy(data);
    let line = cleaner.line(&text, 200);
    assert!(line.chars().count() <= 200 && !line.contains(char::is_control), "{line:?}");
    assert_eq!(*cleaner.line(&line, 200), *line, "cleaned twice");
    let kept = cleaner.output(data, 300, 300);
    for part in [&kept.head, &kept.tail] {
        let is_raw = |sign: char| sign.is_control() && sign != '\n' && sign != '\t';
        assert!(part.chars().count() <= 600 && !part.contains(is_raw), "{part:?}");
        assert!(!part.contains("s3cr3t-v4lue-0f-it"), "a known value is kept");
    }
    let secrets: Secrets = cleaner.secrets_in(&data[..data.len().min(4096)]);
    let _ = secrets.cut(&text).len();
}

/// Any stream of events is read, the same way however it was cut, and no message is longer than allowed.
pub fn events(data: &[u8]) {
    let (piece, stream) = match data {
        [piece, stream @ ..] => (usize::from(*piece).max(1), stream),
        [] => (1, data),
    };
    let most = 512;
    let read = |piece: usize| {
        let mut reader = EventStream::new(most);
        let mut messages = Vec::new();
        for mut bytes in stream.chunks(piece) {
            while let Some(step) = reader.read(&mut bytes) {
                match step {
                    StreamStep::Message(message) => messages.push(message),
                    StreamStep::TooLong { .. } => return (messages, None),
                }
            }
        }
        let (id, retry) = (reader.last_id().map(str::to_owned), reader.retry());
        (messages, Some((id, retry, reader.rest())))
    };
    let whole = read(usize::MAX);
    assert_eq!(whole, read(piece), "a stream depends on how it was cut");
    for message in &whole.0 {
        assert!(message.len() <= most + 8 && !message.trim_ascii().is_empty(), "{}", message.len());
    }
}

/// Any stream of frames is cut the same way however it came, and whatever is exchanged in a frame or added to it, what was JSON
/// is JSON, and all else stays.
pub fn frames(data: &[u8]) {
    let (piece, stream) = match data {
        [piece, stream @ ..] => (usize::from(*piece).max(1), stream),
        [] => (1, data),
    };
    let most = 1024;
    let cut = |piece: usize| {
        let mut framer = Framer::new(most);
        let mut pieces = Vec::new();
        for bytes in stream.chunks(piece) {
            framer.feed(bytes, |piece| pieces.push(piece));
        }
        framer.finish(|piece| pieces.push(piece));
        pieces
    };
    let whole = cut(usize::MAX);
    assert_eq!(whole, cut(piece), "frames depend on how they were cut");
    assert_eq!(whole, cut(1), "frames depend on how they were cut");
    for piece in whole {
        match piece {
            Piece::Frame(frame) => {
                assert!(frame.len() <= most && !frame.trim_ascii().is_empty(), "{}", frame.len());
                one_frame(&frame);
            }
            Piece::TooLong(part) => assert!(part.len() <= 200, "{}", part.len()),
            Piece::Within(_) => {}
        }
    }
}

fn one_frame(frame: &[u8]) {
    let name = Id::text("another \"name\"");
    let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes);
    let was_json = json(frame);
    let _ = mcp::depth(frame);
    for changed in
        [mcp::renamed(frame, &name), mcp::with_argument(frame, "a", &json!(1))].into_iter().flatten()
    {
        assert_eq!(json(&changed).is_ok(), was_json.is_ok(), "{}", String::from_utf8_lossy(&changed));
    }
    if let (Some(renamed), Ok(mut was)) = (mcp::renamed(frame, &name), was_json) {
        was["id"] = "another \"name\"".into();
        assert_eq!(json(&renamed).ok(), Some(was), "something else has changed");
    }
    let id = match mcp::read(frame) {
        Message::Request { id, params, .. } => {
            let _ = params.and_then(ToolCall::of);
            Some(id)
        }
        Message::Answer { id, came } => {
            if let Ok(result) = came {
                let _ = ToolResult::of(result);
                let addition = Addition { text: "more".to_owned(), structured: Some(("more", json!(1))) };
                let mut added = frame.to_vec();
                let _ = mcp::add(&mut added, &name, &addition);
                assert_eq!(json(&added).is_ok(), json(frame).is_ok(), "{}", String::from_utf8_lossy(&added));
            }
            id
        }
        _ => None,
    };
    // A part of a message either does not tell its name, or tells the right one.
    let mentions = frame.windows(4).filter(|part| part == br#""id""#).count();
    let is_plain = !frame.contains(&b'\\');
    if let (Some(id), 1, true) = (id, mentions, is_plain) {
        for at in 0..frame.len() {
            let told = Glimpse::all(&frame[..at]).into_iter().filter_map(|glimpse| glimpse.id);
            told.for_each(|told| assert_eq!(told, id, "{}", String::from_utf8_lossy(frame)));
        }
    }
}
