//! Tokens that are known by their shape: a prefix its issuer chose so that they can be found.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::reading::{Hold, Text};
use super::{Find, is_random, run};

/// So much more than the least behind a prefix decides whether it is a token's; only then is the end looked for.
const DECIDING_LENGTH: usize = 40;

/// What may stand in a token behind its prefix.
#[derive(Clone, Copy)]
enum Alphabet {
    /// Letters and digits.
    Plain,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-`.
    UrlSafe,
    /// Letters, digits, `_`, `-`, `.`, `/` and `%`.
    Path,
}

/// Where a prefix counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    /// It is like nothing else, wherever it stands.
    Anywhere,
    /// It could also be the end of a word (`task-…`), so it must begin one.
    WordStart,
}
use Alphabet::{Path, Plain, UrlSafe, Word};
use Position::{Anywhere, WordStart};

struct Shape {
    kind: &'static str,
    prefix: &'static str,
    position: Position,
    alphabet: Alphabet,
    /// The fewest characters behind the prefix.
    at_least: usize,
}

const fn shape(
    kind: &'static str,
    prefix: &'static str,
    position: Position,
    alphabet: Alphabet,
    at_least: usize,
) -> Shape {
    Shape { kind, prefix, position, alphabet, at_least }
}

/// One row per prefix. All of them end in `_` or `-`, which is where the search begins: one pass serves every row.
const JOINED: &[Shape] = &[
    shape("github-token", "ghp_", Anywhere, Word, 20),
    shape("github-token", "gho_", Anywhere, Word, 20),
    shape("github-token", "ghu_", Anywhere, Word, 20),
    shape("github-token", "ghs_", Anywhere, Word, 20),
    shape("github-token", "ghr_", Anywhere, Word, 20),
    shape("github-token", "github_pat_", Anywhere, Word, 20),
    shape("gitlab-token", "glpat-", Anywhere, UrlSafe, 16),
    // OpenAI's, Anthropic's (`sk-ant-`) and many others'.
    shape("api-key", "sk-", WordStart, UrlSafe, 20),
    shape("stripe-key", "sk_live_", Anywhere, Plain, 16),
    shape("stripe-key", "rk_live_", Anywhere, Plain, 16),
    shape("slack-token", "xoxb-", Anywhere, UrlSafe, 10),
    shape("slack-token", "xoxa-", Anywhere, UrlSafe, 10),
    shape("slack-token", "xoxp-", Anywhere, UrlSafe, 10),
    shape("slack-token", "xoxs-", Anywhere, UrlSafe, 10),
    shape("slack-token", "xapp-", Anywhere, UrlSafe, 10),
    shape("slack-token", "xoxe-", Anywhere, UrlSafe, 10),
    shape("stripe-key", "sk_test_", Anywhere, Plain, 16),
    shape("stripe-key", "whsec_", WordStart, Plain, 24),
    shape("gitlab-token", "gldt-", Anywhere, UrlSafe, 16),
    shape("gitlab-token", "glrt-", Anywhere, UrlSafe, 16),
    shape("digitalocean-token", "dop_v1_", Anywhere, Plain, 40),
    shape("shopify-token", "shpat_", Anywhere, Plain, 24),
    shape("npm-token", "npm_", WordStart, Plain, 30),
    shape("pypi-token", "pypi-", WordStart, UrlSafe, 60),
    shape("huggingface-token", "hf_", WordStart, Plain, 20),
    shape("age-key", "AGE-SECRET-KEY-", Anywhere, Plain, 40),
];

/// Prefixes that do not; each costs a pass of its own.
const OTHERS: &[Shape] = &[
    shape("slack-webhook", "hooks.slack.com/services/", Anywhere, Path, 20),
    shape("discord-webhook", "discord.com/api/webhooks/", Anywhere, Path, 30),
    shape("google-key", "AIza", WordStart, UrlSafe, 35),
    shape("sendgrid-key", "SG.", WordStart, Path, 60),
    shape("telegram-token", ":AA", Anywhere, UrlSafe, 32),
];

/// The searches, prepared once: a process that cuts often pays for that once.
static OTHER_FINDERS: LazyLock<Vec<(Finder<'static>, &'static Shape)>> =
    LazyLock::new(|| OTHERS.iter().map(|shape| (Finder::new(shape.prefix), shape)).collect());

pub(super) fn find(text: Text<'_>, finds: &mut Vec<Find>) {
    let mut done = 0;
    for joint in memchr::memchr2_iter(b'_', b'-', &text) {
        if joint < done {
            continue;
        }
        let until = &text[..=joint];
        // Two bytes rule out nearly every row; the rest of a prefix is compared only then.
        let Some(end) = until.last_chunk::<2>() else { continue };
        let found = JOINED.iter().find(|shape| {
            shape.prefix.as_bytes().last_chunk::<2>() == Some(end) && until.ends_with(shape.prefix.as_bytes())
        });
        let Some(shape) = found else { continue };
        done = shape.look(text, until.len() - shape.prefix.len(), finds);
    }
    for (finder, shape) in OTHER_FINDERS.iter() {
        let mut done = 0;
        for start in finder.find_iter(&text) {
            if start >= done {
                done = shape.look(text, start, finds);
            }
        }
    }
    find_vault_tokens(text, finds);
    find_aws_keys(text, finds);
    find_web_tokens(text, finds);
}

impl Shape {
    /// Looks at the prefix that begins at `start`, and returns how far there is nothing more to look at.
    fn look(&self, text: Text<'_>, start: usize, finds: &mut Vec<Find>) -> usize {
        let body = start + self.prefix.len();
        if self.position == WordStart && !begins_word(text, start) {
            return body;
        }
        let end_in =
            |text: Text<'_>| text.word(body, |byte| self.alphabet.has(byte), Hold::AtLeast(self.at_least));
        let near = end_in(text.until(body + self.at_least + DECIDING_LENGTH));
        if near - body < self.at_least || !is_token(&text[body..near]) {
            return body;
        }
        let end = end_in(text);
        finds.push(Find { start, end, kind: self.kind });
        end
    }
}

/// A token is random and has a long stretch without a separator; a name in kebab case is not and has not.
fn is_token(body: &[u8]) -> bool {
    is_random(body) && body.split(|byte| !byte.is_ascii_alphanumeric()).any(|part| part.len() >= 8)
}

/// Whether a word begins at `at`. After an escape (`\n`) and after a colour (`\x1b[31m`) one does.
fn begins_word(text: Text<'_>, at: usize) -> bool {
    let before = &text[at.saturating_sub(8)..at];
    let Some((&last, rest)) = before.split_last() else { return true };
    if text.joint(at).is_some() {
        return true;
    }
    let is_inside = last.is_ascii_alphanumeric() || matches!(last, b'_' | b'-');
    !is_inside
        || (matches!(last, b'n' | b'r' | b't') && rest.last() == Some(&b'\\'))
        || (last == b'm' && rest.contains(&0x1b))
}

/// HashiCorp Vault's tokens for services, batches and recovery. One pass serves the three prefixes.
fn find_vault_tokens(text: Text<'_>, finds: &mut Vec<Find>) {
    const SHAPES: [Shape; 3] = [
        shape("vault-token", "hvs.", WordStart, UrlSafe, 16),
        shape("vault-token", "hvb.", WordStart, UrlSafe, 16),
        shape("vault-token", "hvr.", WordStart, UrlSafe, 16),
    ];
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("hv"));
    let mut done = 0;
    for start in FINDER.find_iter(&text) {
        let shape = SHAPES.iter().find(|shape| text[start..].starts_with(shape.prefix.as_bytes()));
        if let Some(shape) = shape.filter(|_| start >= done) {
            done = shape.look(text, start, finds);
        }
    }
}

/// `AKIA` or `ASIA` and exactly sixteen capitals or digits.
fn find_aws_keys(text: Text<'_>, finds: &mut Vec<Find>) {
    static FINDERS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("AKIA"), Finder::new("ASIA")]);
    for finder in FINDERS.iter() {
        for start in finder.find_iter(&text) {
            // One more than enough shows that it is too long.
            let near = &text[start..text.len().min(start + 21)];
            let length = run(near, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
            let is_whole = length != 20 || !text.get(20 + start).is_some_and(u8::is_ascii_lowercase);
            let is_long_enough = length == 20 || (length > 20 && text.joint(start + 20).is_some());
            if is_long_enough && is_whole && begins_word(text, start) {
                finds.push(Find { start, end: start + 20, kind: "aws-key" });
            }
        }
    }
}

/// JSON web tokens: three parts of base64 between dots, the first of them an object.
fn find_web_tokens(text: Text<'_>, finds: &mut Vec<Find>) {
    static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("eyJ"));
    let mut done = 0;
    for start in FINDER.find_iter(&text) {
        if start < done {
            continue;
        }
        let end = text.word(start, |byte| byte == b'.' || UrlSafe.has(byte), Hold::AtLeast(40));
        done = end;
        let mut parts = text[start..end].split(|byte| *byte == b'.').map(<[u8]>::len);
        let is_token = parts.next() >= Some(10) && parts.next() >= Some(10) && parts.next().is_some();
        if is_token {
            finds.push(Find { start, end, kind: "jwt" });
        }
    }
}

impl Alphabet {
    fn has(self, byte: u8) -> bool {
        byte.is_ascii_alphanumeric()
            || match self {
                Plain => false,
                Word => byte == b'_',
                UrlSafe => matches!(byte, b'_' | b'-'),
                Path => matches!(byte, b'_' | b'-' | b'.' | b'/' | b'%'),
            }
    }
}
