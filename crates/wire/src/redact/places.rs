//! Secrets that are known by the place they stand in: a URL, a key file, a header, a program's own option.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::labels::{is_placeholder, value};
use super::{Find, is_random, run};

/// How far before an option its program is looked for.
const COMMAND_LENGTH: usize = 400;

struct Finders {
    pem: Finder<'static>,
    pem_end: Finder<'static>,
    url: Finder<'static>,
    bearer: Finder<'static>,
    option: Finder<'static>,
}

/// A program's option that takes a secret, and how.
struct SecretOption {
    program: &'static str,
    /// As it stands in the command, with what surrounds it.
    written: &'static str,
    takes: Takes,
}

#[derive(Clone, Copy)]
enum Takes {
    /// The value: glued to the option, or the next word.
    Value,
    /// The next word is `user:value`.
    UserAndValue,
}

const fn option(program: &'static str, written: &'static str, takes: Takes) -> SecretOption {
    SecretOption { program, written, takes }
}

/// One row per option. The same letters mean other things elsewhere (`mkdir -p`), so the program has to stand before.
const OPTIONS: &[SecretOption] = &[
    option("mysql", " -p", Takes::Value),
    option("mariadb", " -p", Takes::Value),
    option("sshpass", " -p ", Takes::Value),
    option("sshpass", " -p", Takes::Value),
    option("docker login", " -p ", Takes::Value),
    option("curl", " -u ", Takes::UserAndValue),
    option("curl", " --user ", Takes::UserAndValue),
];

static FINDERS: LazyLock<Finders> = LazyLock::new(|| Finders {
    pem: Finder::new("-----BEGIN "),
    pem_end: Finder::new("-----END "),
    url: Finder::new("://"),
    bearer: Finder::new("earer "),
    option: Finder::new(" -"),
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
    for at in FINDERS.bearer.find_iter(text) {
        let start = at + 6;
        let is_bearer = matches!(text.get(at.wrapping_sub(1)), Some(b'B' | b'b'));
        let end =
            start + run(&text[start..], |byte| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte));
        if is_bearer && end - start >= 12 && is_random(&text[start..end]) {
            finds.push(Find { start, end, kind: "bearer-token" });
        }
    }
}

/// Options of programs that are known to take secrets, behind their program on its line.
fn find_options(text: &[u8], finds: &mut Vec<Find>) {
    let mut done = 0;
    for at in FINDERS.option.find_iter(text) {
        if at < done {
            continue;
        }
        let command = &text[at.saturating_sub(COMMAND_LENGTH)..at];
        let line = memchr::memrchr(b'\n', command).map_or(command, |newline| &command[newline..]);
        let found = OPTIONS.iter().find_map(|option| {
            let is_option = text[at..].starts_with(option.written.as_bytes());
            if !is_option || memchr::memmem::find(line, option.program.as_bytes()).is_none() {
                return None;
            }
            option.takes.value(text, at + option.written.len())
        });
        if let Some(found) = found {
            done = found.end;
            finds.push(found);
        }
    }
}

impl Takes {
    fn value(self, text: &[u8], at: usize) -> Option<Find> {
        let (start, end) = match self {
            Takes::Value => value(text, at)?,
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
