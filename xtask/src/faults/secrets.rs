//! Secrets of several kinds, planted wherever a payload has a place for a text: none of them may be found in any byte of any
//! file of the store, nor in anything that is printed from it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::sweep::{files, hold};
use crate::Fault;
use crate::dice::Dice;
use crate::world::{Reply, World, lines, speak};

/// A part of a secret that is this long is as bad as the whole.
const PART: usize = 12;

/// What is printed from a store.
const PRINTS: [&[&str]; 8] = [
    &["export", "--jsonl"],
    &["log", "--json", "--since", "0"],
    &["log", "--since", "0"],
    &["problems", "--all"],
    &["problems", "--all", "--json"],
    &["show", "1"],
    &["show", "20", "--json"],
    &["stats", "--by", "tool"],
];

/// A secret, and the words around it as one meets them.
struct Secret {
    kind: &'static str,
    value: String,
    /// `§` stands for the value.
    around: &'static str,
}

/// The search, and what it has found.
struct Search {
    needles: Needles,
    planted: Planted,
    leaks: BTreeMap<String, Leak>,
}

/// Where parts of a secret were found.
#[derive(Debug, Default)]
struct Leak {
    places: BTreeSet<String>,
    example: String,
}

/// What was planted.
#[derive(Debug, Default)]
pub struct Planted {
    secrets: usize,
    places: usize,
    files: usize,
    bytes: usize,
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Planted { secrets, places, files, bytes } = self;
        write!(
            f,
            "{secrets} secrets in {places} places, found nowhere in {files} files and prints ({bytes} bytes)"
        )
    }
}

/// Plants all, looks everywhere.
pub fn run(unstuck: &Path, full: bool) -> Result<Planted, Fault> {
    let secrets = secrets();
    let mut search = Search::new(&secrets);
    for secret in &secrets {
        for (form, text) in forms(secret) {
            let world = World::in_memory(unstuck)?;
            let mut payloads = payloads(&text);
            search.planted.places += payloads.len();
            // Some of it on the way of ordinary writes, some while another process holds the database.
            let late = payloads.split_off(payloads.len() / 2);
            answered(&world.send(&payloads)?, payloads.len(), secret.kind)?;
            let held = hold(&world.store())?;
            let mut impatient = world.hook::<&str>(&[]);
            impatient.env("UNSTUCK_STORE_WAIT_BEFORE", "1ms").env("UNSTUCK_STORE_WAIT_AFTER", "1ms");
            answered(&speak(impatient, &lines(&late), None)?, late.len(), secret.kind)?;
            let what = format!("{}, {form}", secret.kind);
            search.files(&what, &world.state())?;
            drop(held);
            search.prints(&what, &world)?;
            search.files(&what, &world.state())?;
        }
    }
    for secret in secrets.iter().take(if full { secrets.len() } else { 1 }) {
        let world = World::in_memory(unstuck)?;
        huge_line(&world, secret, &mut search.planted)?;
        search.files(&format!("{}, in a line of ten megabytes", secret.kind), &world.state())?;
    }
    for (form, text) in values(&secrets[0].value) {
        let world = World::in_memory(unstuck)?;
        let payloads = payloads(&text);
        let mut hook = world.hook::<&str>(&[]);
        hook.env("X_API_TOKEN", &secrets[0].value);
        answered(&speak(hook, &lines(&payloads), None)?, payloads.len(), form)?;
        search.planted.places += payloads.len();
        search.files(form, &world.state())?;
    }
    search.verdict()
}

impl Search {
    fn new(secrets: &[Secret]) -> Search {
        let planted = Planted { secrets: secrets.len(), ..Planted::default() };
        Search { needles: Needles::of(secrets), planted, leaks: BTreeMap::new() }
    }

    /// Every byte of every file, and its name.
    fn files(&mut self, what: &str, folder: &Path) -> Result<(), Fault> {
        for path in files(folder)? {
            let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
            self.bytes(what, &fs::read(&path)?, &name);
            self.bytes(what, name.as_bytes(), "a file's name");
        }
        Ok(())
    }

    /// Everything that is printed from the store.
    fn prints(&mut self, what: &str, world: &World) -> Result<(), Fault> {
        for args in PRINTS {
            let reply = world.run(args)?;
            let name = format!("unstuck {}", args.join(" "));
            if reply.stdout.is_empty() {
                return Err(format!("{name} prints nothing: {reply:?}").into());
            }
            self.bytes(what, reply.stdout.as_bytes(), &name);
            self.bytes(what, reply.stderr.as_bytes(), &name);
        }
        Ok(())
    }

    fn bytes(&mut self, what: &str, bytes: &[u8], place: &str) {
        self.planted.files += 1;
        self.planted.bytes += bytes.len();
        if let Some(at) = self.needles.find(bytes) {
            let shown = String::from_utf8_lossy(&bytes[at.saturating_sub(70)..(at + 40).min(bytes.len())]);
            let leak = self.leaks.entry(what.to_owned()).or_default();
            leak.places.insert(place.to_owned());
            leak.example = shown.escape_debug().to_string();
        }
    }

    fn verdict(self) -> Result<Planted, Fault> {
        if self.leaks.is_empty() {
            return Ok(self.planted);
        }
        let tell = |(what, leak): (&String, &Leak)| {
            let places: Vec<&str> = leak.places.iter().map(String::as_str).collect();
            format!("{what}: in {}, for example …{}…", places.join(", "), leak.example)
        };
        let told: Vec<String> = self.leaks.iter().map(tell).collect();
        Err(format!("{} secrets are kept in clear:\n{}", told.len(), told.join("\n")).into())
    }
}

/// Made afresh from a fixed seed, so that no list of well-known examples can know them.
fn secrets() -> Vec<Secret> {
    let mut dice = Dice(20_261_115);
    let mut letters = |alphabet: &str, count: usize| -> String {
        let alphabet: Vec<char> = alphabet.chars().collect();
        (0..count).map(|_| alphabet[dice.below(alphabet.len() as u64) as usize]).collect()
    };
    const WORD: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    const HEX: &str = "0123456789abcdef";
    let secret = |kind, value: String, around| Secret { kind, value, around };
    vec![
        secret("environment variable", letters(WORD, 40), "X_API_TOKEN=§"),
        secret(
            "GitHub token",
            format!("ghp_{}", letters(WORD, 36)),
            "remote: https://github.example auth § used",
        ),
        secret("AWS key", format!("AKIA{}", letters(UPPER, 16)), "aws_access_key_id = §"),
        secret("AWS secret", letters(WORD, 40), "aws_secret_access_key = §"),
        secret("bearer token", letters(HEX, 48), "Authorization: Bearer §"),
        secret(
            "Slack token",
            format!("xoxb-{}-{}", letters("123456789", 12), letters(WORD, 24)),
            "slack says §",
        ),
        secret("model key", format!("sk-ant-api03-{}", letters(WORD, 48)), "ANTHROPIC_API_KEY=§"),
        secret("password", format!("Tr0ub{}", letters(WORD, 14)), "curl https://ann:§@db.example/x"),
        secret("password option", letters(WORD, 24), "mysql --password=§ -h db.example"),
        secret("cookie", letters(WORD, 44), "Cookie: sessionid=§; Path=/"),
        secret("JSON key", letters(WORD, 32), r#"{"client_secret":"§"}"#),
        secret(
            "web token",
            format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI{}.{}", letters(WORD, 24), letters(WORD, 43)),
            "token is §",
        ),
        secret(
            "private key",
            (0..4).map(|_| letters(WORD, 64)).collect::<Vec<_>>().join("\n"),
            "-----BEGIN PRIVATE KEY-----\n§\n-----END PRIVATE KEY-----",
        ),
    ]
}

/// The text itself, split over two lines, in base64 and in a URL.
fn forms(secret: &Secret) -> Vec<(&'static str, String)> {
    let value = &secret.value;
    let text = secret.around.replace('§', value);
    let mut forms = vec![
        ("as it is", format!("first line\n{text}\nlast line")),
        (
            "as basic authorization",
            format!("Authorization: Basic {}", base64(format!("ann:{value}").as_bytes())),
        ),
        ("in base64 with its surroundings", format!("payload={}", base64(text.as_bytes()))),
    ];
    if !value.contains('\n') {
        let (head, tail) = value.split_at(value.len() / 2);
        let split = |by: &str| secret.around.replace('§', &format!("{head}{by}{tail}"));
        forms.push(("split by a backslash and a line break", split("\\\n")));
        forms.push(("split over two lines", split("\n    ")));
        let url =
            |name: &str, value: String| format!("GET https://api.example/v1?q=1&{name}={value} HTTP/1.1");
        forms.push(("in a URL", url("access_token", percent(value, false))));
        forms.push(("in a URL, every letter encoded", url("api_key", percent(value, true))));
    }
    forms
}

/// The value of a variable with a telling name, without that name beside it.
fn values(value: &str) -> [(&'static str, String); 4] {
    [
        ("value of a variable", format!("the value {value} stands here")),
        ("value of a variable, in base64", base64(value.as_bytes())),
        ("value of a variable, within a word", format!("x{value}y")),
        ("value of a variable, in a path", format!("https://api.example/{value}/x")),
    ]
}

/// A payload for each place a text can stand in.
fn payloads(text: &str) -> Vec<Value> {
    let input = json!({"command": "true"});
    let mut all = Vec::new();
    let mut number = 0;
    let mut plant = |event: &str, field: &str, value: Value| {
        number += 1;
        let mut payload = json!({
            "event": event, "session": "s", "call_id": format!("c{number}"), "tool": "Bash",
            "input": input, "agent": "main", "cwd": "/srv/app",
        });
        if event == "after" {
            payload["exit_code"] = json!(1);
        }
        payload[field] = value;
        all.push(payload);
    };
    for field in ["session", "call_id", "tool", "cwd", "agent"] {
        plant("before", field, json!(text));
        plant("after", field, json!(text));
    }
    for event in ["before", "after"] {
        plant(event, "input", json!({"command": text, "nested": {"list": [text, {"deep": text}]}}));
        plant(event, "input", json!({text: "a key"}));
        plant(event, "input", json!(text));
    }
    for field in ["stdout", "stderr", "output", "error"] {
        plant("after", field, json!(text));
        plant("after", field, json!(format!("fatal: could not read\nerror: {text}\nfailed")));
    }
    all
}

/// A line of ten megabytes with the secret at its beginning, in its middle and at its end.
fn huge_line(world: &World, secret: &Secret, planted: &mut Planted) -> Result<(), Fault> {
    let text = secret.around.replace('§', &secret.value);
    let filler = "lorem ipsum dolor ".repeat(5_000_000 / 18);
    // Copies on all sorts of places: wherever the text is cut, it is cut through one of them.
    let copies: String = (0..40).map(|n| format!("{} {text} ", "x".repeat(n))).collect();
    let line = format!("{copies}{filler}{text} {filler}{copies}");
    let mut all = payloads("x").split_off(payloads("x").len() - 4);
    for (field, payload) in ["stdout", "stderr", "output", "error"].iter().zip(&mut all) {
        payload[field] = json!(line);
    }
    all[0]["input"] = json!({"command": line});
    planted.places += all.len() + 1;
    answered(&world.send(&all)?, all.len(), secret.kind)
}

fn answered(reply: &Reply, count: usize, kind: &str) -> Result<(), Fault> {
    let told = reply.told()?;
    match told.len() == count && told.iter().all(|told| told.is_acknowledged()) && reply.stderr.is_empty() {
        true => Ok(()),
        false => Err(format!("{kind}: {count} payloads were not all kept: {reply:?}").into()),
    }
}

/// Every run of [`PART`] bytes of every secret and of its codes.
struct Needles {
    parts: HashSet<[u8; PART]>,
    /// The first two bytes of them all: most places are passed over by a look at these.
    begins: Vec<bool>,
}

impl Needles {
    fn of(secrets: &[Secret]) -> Needles {
        let mut parts = HashSet::new();
        for shape in secrets.iter().flat_map(|secret| secret.value.lines()).flat_map(shapes) {
            let windows = shape.as_bytes().windows(PART).filter(|part| !is_public(part));
            parts.extend(windows.filter_map(|part| <[u8; PART]>::try_from(part).ok()));
        }
        let mut begins = vec![false; 1 << 16];
        parts.iter().for_each(|part| begins[first_two(part)] = true);
        Needles { parts, begins }
    }

    /// Where a part of a secret stands.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        bytes.windows(PART).position(|window| self.begins[first_two(window)] && self.parts.contains(window))
    }
}

fn first_two(bytes: &[u8]) -> usize {
    usize::from(bytes[0]) << 8 | usize::from(bytes[1])
}

/// A secret as it is, in hexadecimal and in base64, which looks different at each of three offsets.
fn shapes(line: &str) -> Vec<String> {
    let hex: String = line.bytes().map(|byte| format!("{byte:02x}")).collect();
    let coded = |offset: usize| {
        let coded = base64(&[&b"xx"[..offset], line.as_bytes()].concat());
        coded.get(4..coded.len().saturating_sub(4)).unwrap_or_default().to_owned()
    };
    vec![line.to_owned(), hex, coded(0), coded(1), coded(2)]
}

fn is_public(part: &[u8]) -> bool {
    PUBLIC.iter().any(|public| public.as_bytes().windows(PART).any(|run| run == part))
}

/// Beginnings that say what a secret is, and nothing of it.
const PUBLIC: [&str; 2] = ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI", "sk-ant-api03-"];

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let number = chunk.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for index in 0..4 {
            match index <= chunk.len() {
                true => text.push(char::from(ALPHABET[(number >> (18 - 6 * index)) as usize & 63])),
                false => text.push('='),
            }
        }
    }
    text
}

/// Percent-encodes; all of it, or only what is no letter or digit.
fn percent(text: &str, all: bool) -> String {
    let code = |byte: u8| match byte.is_ascii_alphanumeric() && !all {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_secret_is_found_in_every_code() {
        let secrets = [Secret { kind: "test", value: "correct-horse-battery".to_owned(), around: "@" }];
        let needles = Needles::of(&secrets);
        let hidden = [
            "..horse-battery..".to_owned(),
            base64(b"user:correct-horse-battery"),
            base64(b"u:correct-horse-battery"),
            "636f72726563742d686f727365".to_owned(),
        ];
        for text in hidden {
            assert!(needles.find(text.as_bytes()).is_some(), "{text}");
        }
        assert!(needles.find(b"correct horse battery staple").is_none());
    }

    #[test]
    fn base64_is_the_standard_one() {
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
    }
}
