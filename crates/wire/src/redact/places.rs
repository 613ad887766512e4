//! Secrets that are known by the place they stand in: a URL, a key file, a header, a program's own option.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::labels::{is_placeholder, value};
use super::{Find, is_random, run};

/// How far from its program an option is looked for.
const COMMAND_LENGTH: usize = 400;

struct Finders {
    pem: Finder<'static>,
    pem_end: Finder<'static>,
    url: Finder<'static>,
    bearer: [Finder<'static>; 2],
    programs: Vec<(Finder<'static>, &'static [Option_])>,
}

/// An option that takes a secret, and how.
struct Option_ {
    /// As it stands in the command, with what surrounds it.
    written: &'static str,
    takes: Takes,
}

#[derive(Clone, Copy)]
enum Takes {
    /// The value is glued to it.
    Glued,
    /// The next word is the value.
    Word,
    /// The next word is `user:value`.
    UserAndValue,
}

/// Programs whose short options take secrets. The same letters mean other things elsewhere (`mkdir -p`).
const PROGRAMS: &[(&str, &[Option_])] = &[
    ("mysql", &[Option_ { written: " -p", takes: Takes::Glued }]),
    ("mariadb", &[Option_ { written: " -p", takes: Takes::Glued }]),
    (
        "sshpass",
        &[Option_ { written: " -p ", takes: Takes::Word }, Option_ { written: " -p", takes: Takes::Glued }],
    ),
    ("docker login", &[Option_ { written: " -p ", takes: Takes::Word }]),
    (
        "curl",
        &[
            Option_ { written: " -u ", takes: Takes::UserAndValue },
            Option_ { written: " --user ", takes: Takes::UserAndValue },
        ],
    ),
];

static FINDERS: LazyLock<Finders> = LazyLock::new(|| Finders {
    pem: Finder::new("-----BEGIN "),
    pem_end: Finder::new("-----END "),
    url: Finder::new("://"),
    bearer: [Finder::new("Bearer "), Finder::new("bearer ")],
    programs: PROGRAMS.iter().map(|(name, options)| (Finder::new(*name), *options)).collect(),
});

pub(super) fn find(text: &[u8], finds: &mut Vec<Find>) {
    find_private_keys(text, finds);
    find_url_passwords(text, finds);
    find_bearer_tokens(text, finds);
    find_options(text, finds);
}

/// From `BEGIN … PRIVATE KEY` to its `END`; without one, to the end of the text: the rest may well be the key.
fn find_private_keys(text: &[u8], finds: &mut Vec<Find>) {
    let mut done = 0;
    for start in FINDERS.pem.find_iter(text) {
        if start < done {
            continue;
        }
        let title = &text[start + 11..text.len().min(start + 64)];
        let title =
            &title[..run(title, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ')];
        if !title.ends_with(b"PRIVATE KEY") && !title.ends_with(b"PRIVATE KEY BLOCK") {
            continue;
        }
        let end = FINDERS.pem_end.find(&text[start..]).map_or(text.len(), |at| {
            let tail = start + at + 9;
            let tail = tail + run(&text[tail..], |byte| byte != b'-' && byte != b'\n');
            tail + run(&text[tail..], |byte| byte == b'-')
        });
        finds.push(Find { start, end, kind: "private-key" });
        done = end;
    }
}

/// `scheme://user:password@host`.
fn find_url_passwords(text: &[u8], finds: &mut Vec<Find>) {
    const USER_LENGTH: usize = 512;
    for at in FINDERS.url.find_iter(text) {
        let start = at + 3;
        let near = &text[start..text.len().min(start + USER_LENGTH)];
        let authority =
            &near[..run(near, |byte| !byte.is_ascii_whitespace() && !b"/?#\"'<>`\\".contains(&byte))];
        let Some(at_sign) = memchr::memrchr(b'@', authority) else { continue };
        let Some(colon) = memchr::memchr(b':', &authority[..at_sign]) else { continue };
        let password = &authority[colon + 1..at_sign];
        if !password.is_empty() && !is_placeholder(password) {
            finds.push(Find { start: start + colon + 1, end: start + at_sign, kind: "url-password" });
        }
    }
}

/// `Bearer` and something that only a machine would write.
fn find_bearer_tokens(text: &[u8], finds: &mut Vec<Find>) {
    for finder in &FINDERS.bearer {
        for at in finder.find_iter(text) {
            let start = at + 7;
            let end = start
                + run(&text[start..], |byte| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte));
            if end - start >= 12 && is_random(&text[start..end]) {
                finds.push(Find { start, end, kind: "bearer-token" });
            }
        }
    }
}

/// Options of programs that are known to take secrets, on the program's own line.
fn find_options(text: &[u8], finds: &mut Vec<Find>) {
    for (finder, options) in &FINDERS.programs {
        let mut done = 0;
        for program in finder.find_iter(text) {
            let from = program.max(done);
            let line = &text[from..text.len().min(program + COMMAND_LENGTH).max(from)];
            let line = &line[..run(line, |byte| byte != b'\n')];
            for option in *options {
                let Some(at) = memchr::memmem::find(line, option.written.as_bytes()) else { continue };
                if let Some(found) = option.takes.value(text, from + at + option.written.len()) {
                    finds.push(found);
                }
            }
            // Whatever else stands on this line belongs to this program.
            done = from + line.len();
        }
    }
}

impl Takes {
    fn value(self, text: &[u8], at: usize) -> Option<Find> {
        let (start, end) = match self {
            Takes::Glued | Takes::Word => value(text, at)?,
            Takes::UserAndValue => {
                let (start, end) = value(text, at)?;
                let colon = memchr::memchr(b':', &text[start..end])?;
                (start + colon + 1, end)
            }
        };
        let word = &text[start..end];
        (!word.is_empty() && !word.starts_with(b"-") && !is_placeholder(word)).then_some(Find {
            start,
            end,
            kind: "password",
        })
    }
}
