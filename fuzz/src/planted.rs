//! Secrets to plant, the places to plant them in, and lines that hold none.
//!
//! The files in `corpus/secrets` say how secrets are made and hold none, so that no scanner takes the repository for a leak.

use std::path::Path;
use std::sync::LazyLock;
use std::{fs, io};

use unstuck_wire::clean::Cleaner;
use unstuck_wire::redact::redact;

/// Shapes of tokens, places for values, harmless lines.
#[derive(Debug, Clone)]
pub struct Corpus {
    shapes: String,
    places: String,
    harmless: String,
}

impl Corpus {
    /// The one of this repository, `corpus/secrets`.
    pub fn own() -> Corpus {
        Corpus {
            shapes: include_str!("../../corpus/secrets/shapes.txt").to_owned(),
            places: include_str!("../../corpus/secrets/places.txt").to_owned(),
            harmless: include_str!("../../corpus/secrets/harmless.txt").to_owned(),
        }
    }

    /// One that is kept elsewhere, in the same form.
    pub fn read(folder: &Path) -> io::Result<Corpus> {
        let file = |name: &str| fs::read_to_string(folder.join(name));
        Ok(Corpus {
            shapes: file("shapes.txt")?,
            places: file("places.txt")?,
            harmless: file("harmless.txt")?,
        })
    }

    /// The names and shapes of tokens.
    pub fn shapes(&self) -> impl Iterator<Item = (&str, &str)> {
        rows(&self.shapes).filter_map(|row| row.split_once('\t'))
    }

    /// The groups and texts of places, with `§` for the value.
    pub fn places(&self) -> impl Iterator<Item = (&str, String)> {
        let mut group = "";
        rows(&self.places).filter_map(move |row| match row.strip_prefix("## ") {
            Some(name) => {
                group = name;
                None
            }
            None => Some((group, unfold(row))),
        })
    }

    /// Lines that hold no secret.
    pub fn harmless(&self, roll: &mut Roll) -> impl Iterator<Item = String> {
        rows(&self.harmless).map(|row| Secret::of_shape(row, roll).text)
    }
}

/// Surroundings of a token that say nothing about it.
pub const CARRIERS: [&str; 37] = [
    "§",
    "error near § in line 3",
    "fatal: § was refused",
    "x=§",
    "(§)",
    "'§'",
    "\"§\",",
    "{\"v\":\"§\"}",
    "first\n§\nlast",
    "see https://a.example/§",
    "\u{1b}[31m§\u{1b}[0m",
    "> §.",
    "+const k = \"§\";",
    "-  old: §",
    "<li>§</li>",
    "`§`",
    "| § | ok |",
    "key:§;",
    "§,§",
    "{§}",
    "GET /x?k=§&p=1 HTTP/1.1",
    "2026-01-02T03:04:05Z INFO got §",
    "\\\"§\\\"",
    "\\t§\\n",
    "//§",
    "#§",
    "@§",
    "argv[2]=§",
    "[1]    12345 segmentation fault (core dumped)  ./a.out §",
    "Error: Request failed with status code 401 (§)",
    "    at f (https://a.example/x.js?t=§:1:2)",
    "密钥§结束",
    "→ §…",
    "*§*",
    "\"C:\\\\x\\\\§\"",
    "x-y: §, y",
    "%22§%22",
];

/// A part of a secret that is this long is as bad as the whole.
const PART: usize = 8;

/// Chance that falls the same way every time for the same seed (SplitMix64).
pub struct Roll(pub u64);

impl Roll {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % end.max(1) as u64).unwrap_or(0)
    }

    fn letters(&mut self, alphabet: &str, count: usize) -> String {
        let alphabet = alphabet.as_bytes();
        (0..count).map(|_| char::from(alphabet[self.below(alphabet.len())])).collect()
    }

    /// Letters of both cases and digits, at least one of each, as a generator of passwords makes them.
    pub fn password(&mut self, length: usize) -> String {
        loop {
            let made = self.letters(alphabet(b'w'), length);
            let has = |test: fn(&u8) -> bool| made.bytes().any(|byte| test(&byte));
            if has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) {
                return made;
            }
        }
    }
}

/// A secret as it was made, and what of it nobody may see.
#[derive(Debug, Clone)]
pub struct Secret {
    /// All of it, with what is public in it.
    pub text: String,
    parts: Vec<String>,
}

impl Secret {
    /// Makes one of a shape.
    pub fn of_shape(shape: &str, roll: &mut Roll) -> Secret {
        let mut secret = Secret { text: String::new(), parts: Vec::new() };
        let mut rest = shape;
        while let Some((before, behind)) = rest.split_once('<') {
            secret.text += before;
            let Some((kind, count, behind)) = behind.split_once('>').and_then(|(code, behind)| {
                Some((*code.as_bytes().first()?, code.get(1..)?.parse().ok()?, behind))
            }) else {
                secret.text.push('<');
                rest = behind;
                continue;
            };
            let part = roll.letters(alphabet(kind), count);
            secret.text += &part;
            secret.parts.push(part);
            rest = behind;
        }
        secret.text += rest;
        secret.text = unfold(&secret.text);
        secret
    }

    /// One that is known only by its place.
    pub fn value(length: usize, roll: &mut Roll) -> Secret {
        let text = roll.password(length);
        Secret { parts: vec![text.clone()], text }
    }

    /// The first stretch of it that stands in `text`.
    pub fn kept_in(&self, text: &[u8]) -> Option<&str> {
        let stretches = self.parts.iter().filter(|part| part.len() >= 6).flat_map(|part| {
            let length = part.len().min(PART);
            (0..=part.len() - length).filter_map(move |at| part.get(at..at + length))
        });
        let mut stretches = stretches;
        stretches.find(|stretch| memchr::memmem::find(text, stretch.as_bytes()).is_some())
    }
}

fn alphabet(kind: u8) -> &'static str {
    match kind {
        b'a' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        b'l' => "abcdefghijklmnopqrstuvwxyz0123456789",
        b'u' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
        b'd' => "0123456789",
        b'h' => "0123456789abcdef",
        b'H' => "0123456789ABCDEF",
        b'b' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
        b's' => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        b'c' => "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
        b'r' => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        _ => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
    }
}

/// Signs that the files write for others.
fn unfold(line: &str) -> String {
    line.replace('⏎', "\n").replace('⇥', "\t")
}

fn rows(file: &str) -> impl Iterator<Item = &str> {
    file.lines().filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// What is left of a text in which a value stands at a place of this group.
pub fn cleaned(cleaner: &Cleaner, group: &str, text: &str) -> String {
    match (group, serde_json::from_str(text)) {
        ("arguments", Ok(arguments)) => cleaner.json(&arguments, 4096).to_string(),
        _ => redact(text).into_owned(),
    }
}

/// How a secret may be written other than plainly.
#[derive(Debug, Clone, Copy)]
pub enum Code {
    /// Each byte by itself.
    Bytes(fn(u8) -> String),
    /// So many bits become a letter.
    Bits(usize, &'static str),
    /// Two strings that are put together.
    Halves,
}

/// The names of codes.
pub const CODES: [(&str, Code); 8] = [
    ("hex", Code::Bytes(|byte| format!("{byte:02x}"))),
    ("hex in capitals", Code::Bytes(|byte| format!("{byte:02X}"))),
    ("percent", Code::Bytes(|byte| format!("%{byte:02X}"))),
    ("entities", Code::Bytes(|byte| format!("&#{byte};"))),
    ("unicode escapes", Code::Bytes(|byte| format!("\\u{byte:04x}"))),
    ("base64", Code::Bits(6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")),
    ("base32", Code::Bits(5, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")),
    ("halves", Code::Halves),
];

impl Code {
    /// `text` in this code.
    pub fn write(self, text: &str) -> String {
        match self {
            Code::Bytes(write) => text.bytes().map(write).collect(),
            Code::Bits(size, alphabet) => letters(text, size, alphabet),
            Code::Halves => {
                let (left, right) = text.split_at(text.floor_char_boundary(text.len() / 2));
                format!("\"{left}\" + \"{right}\"")
            }
        }
    }

    /// Whether a stretch of the secret stands in a text in this code.
    pub fn is_kept(self, secret: &Secret, text: &str) -> bool {
        if secret.kept_in(text.replace("\" + \"", "").as_bytes()).is_some() {
            return true;
        }
        let whole = self.write(&secret.text);
        let stretches = secret.parts.iter().filter(|part| part.len() >= PART).flat_map(|part| {
            let at = secret.text.find(&**part).unwrap_or(0);
            at..=at + part.len() - PART
        });
        let mut written = stretches.filter_map(|at| match self {
            Code::Bytes(write) => {
                Some(secret.text.get(at..at + PART)?.bytes().map(write).collect::<String>())
            }
            Code::Bits(size, _) => {
                Some(whole.get((at * 8).div_ceil(size)..(at + PART) * 8 / size)?.to_owned())
            }
            Code::Halves => None,
        });
        written.any(|stretch| text.contains(&stretch))
    }
}

fn letters(text: &str, size: usize, alphabet: &str) -> String {
    let bits: Vec<u8> = text.bytes().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let letter = |group: &[u8]| {
        let value = (0..size).fold(0, |value, at| value << 1 | usize::from(group.get(at) == Some(&1)));
        char::from(alphabet.as_bytes()[value])
    };
    bits.chunks(size).map(letter).collect()
}

/// Surroundings that the fuzzer writes: in the codes of terminals and of languages, any of it may be part of a secret.
const NOISE: usize = 2_000;

/// A token of a known shape, wherever it stands and however the text is cut, is never kept; what is harmless is the same when
/// it is cleaned again.
///
/// The first bytes choose the shape, the surroundings, the bounds and the chance by which the token is made; the rest is what
/// stands before and behind.
pub fn planted(data: &[u8]) {
    static CORPUS: LazyLock<Corpus> = LazyLock::new(Corpus::own);
    static SHAPES: LazyLock<Vec<&str>> = LazyLock::new(|| CORPUS.shapes().map(|(_, shape)| shape).collect());
    let Some((head, noise)) = data.split_at_checked(8) else { return };
    let [a, b, carrier, head_length, tail_length, seeds @ ..] = head else { return };
    let shape = SHAPES[usize::from(u16::from_be_bytes([*a, *b])) % SHAPES.len()];
    let carrier = CARRIERS[usize::from(*carrier) % CARRIERS.len()];
    let mut roll = Roll(seeds.iter().fold(1, |seed, byte| seed << 8 | u64::from(*byte)));
    let secret = Secret::of_shape(shape, &mut roll);
    let noise = String::from_utf8_lossy(&noise[..noise.len().min(NOISE)]);
    let (before, behind) = noise.split_at(noise.floor_char_boundary(noise.len() / 2));
    // The noise may hold what the token holds by chance only where the fuzzer copies it.
    if secret.kept_in(noise.as_bytes()).is_some() {
        return;
    }
    let text = format!("{before}\n{}\n{behind}", carrier.replace('§', &secret.text));
    let cleaner = Cleaner::new(Some("/home/ann"), []);
    let bounds = [*head_length, *tail_length].map(usize::from);
    let output = cleaner.output(text.as_bytes(), bounds[0] * 4, bounds[1] * 4);
    let kept = [
        ("redact", redact(&text).into_owned()),
        ("line", cleaner.line(&text, bounds[0] * 4).into_string()),
        ("text", cleaner.text(&text, bounds[1] * 4).into_string()),
        ("output", format!("{}\n{}", &*output.head, &*output.tail)),
        ("json", cleaner.json(&serde_json::json!({ "output": text }), 4096).into_string()),
    ];
    for (door, clean) in kept {
        assert!(secret.kept_in(clean.as_bytes()).is_none(), "{door} keeps {:?} in {clean:?}", secret.text);
    }
}
