//! What an HTTP request does to the world, by its method, and how the programs that send one are told about it.

use super::Nature;
use crate::shell::{Command, Stream};

/// What a request with this method, lower case, does. To put or delete twice is as good as once only as long as nobody else
/// writes to the same place in between, so it is not sent again without being asked for.
pub(super) fn nature_of_method(method: &str) -> Nature {
    match method {
        "get" | "head" | "options" | "trace" => Nature::ReadOnly,
        _ => Nature::Writes,
    }
}

/// A program that sends requests, and what its options mean. Short options are letters, long ones have no dashes.
struct Client {
    programs: &'static [&'static str],
    /// The sub-command that sends requests, if not all of them do.
    sub: &'static str,
    /// Short options with a value, which may be glued to them: what follows such a letter is no option.
    valued: &'static str,
    method: Options,
    /// What is given with it is sent.
    body: Options,
    /// With it, what is given is asked for and not sent.
    get: Options,
    /// It changes something whatever the method is: a file that is put there, a mail, a command to the server.
    changes: Options,
    /// What is done stands elsewhere.
    elsewhere: Options,
    /// The answer goes into a file.
    file: Options,
}

struct Options {
    short: &'static str,
    long: &'static [&'static str],
}

const NONE: Options = Options { short: "", long: &[] };

const CLIENTS: &[Client] = &[
    Client {
        programs: &["curl"],
        sub: "",
        valued: "AbcCdDeEFHKmoPQrtTuUwxXyYz",
        method: Options { short: "X", long: &["request"] },
        body: Options {
            short: "dF",
            long: &[
                "data",
                "data-raw",
                "data-binary",
                "data-urlencode",
                "data-ascii",
                "form",
                "form-string",
                "json",
            ],
        },
        get: Options { short: "GI", long: &["get", "head"] },
        changes: Options {
            short: "TQ",
            long: &["upload-file", "quote", "mail-rcpt", "mail-from", "telnet-option"],
        },
        elsewhere: Options { short: "K", long: &["config"] },
        file: Options {
            short: "oOJDc",
            long: &[
                "output",
                "remote-name",
                "remote-name-all",
                "remote-header-name",
                "dump-header",
                "cookie-jar",
            ],
        },
    },
    Client {
        programs: &["wget"],
        sub: "",
        valued: "aABDeiIloOPQRtTUwX",
        method: Options { short: "", long: &["method"] },
        body: Options { short: "", long: &["post-data", "post-file", "body-data", "body-file"] },
        get: NONE,
        changes: NONE,
        elsewhere: NONE,
        file: NONE,
    },
    Client {
        programs: &["gh", "glab"],
        sub: "api",
        valued: "FfHpqtX",
        method: Options { short: "X", long: &["method"] },
        body: Options { short: "fF", long: &["field", "raw-field", "input"] },
        get: NONE,
        changes: NONE,
        elsewhere: NONE,
        file: NONE,
    },
];

/// Programs to which the method is a word of its own, and each further word a part of the request.
const WORDED: &[&str] = &["http", "https", "xh", "xhs"];

/// What a command that sends a request does to the server, or nothing if its words do not say.
pub(super) fn request(command: &Command) -> Option<Nature> {
    let program = command.program.as_str();
    if WORDED.contains(&program) {
        return Some(worded(command));
    }
    let client = CLIENTS.iter().find(|client| client.programs.contains(&program))?;
    if !client.sub.is_empty() && command.operands().next() != Some(client.sub) {
        return None;
    }
    client.nature(command)
}

impl Client {
    fn nature(&self, command: &Command) -> Option<Nature> {
        let (mut method, mut gives, mut gets, mut several) = (None, false, false, false);
        let mut least = Nature::ReadOnly;
        for (option, value) in self.given(command.args()) {
            let is = |options: &Options| options.has(option);
            if is(&self.method) {
                let named = value.map_or(Nature::Writes, |value| nature_of_method(&value.to_lowercase()));
                method = method.max(Some(named));
            }
            gives |= is(&self.body);
            gets |= is(&self.get);
            several |= matches!(option, Given::Long("next") | Given::Short(':'));
            least = match () {
                () if is(&self.elsewhere) => Nature::Unknown,
                () if is(&self.changes) => least.max(Nature::Writes),
                () if is(&self.file) && !value.is_some_and(is_no_file) => least.max(Nature::Idempotent),
                () => least,
            };
        }
        // Of several requests in one line, one may ask and another send.
        let asks = method.map_or(gets, |method| method == Nature::ReadOnly) && !several;
        let sent = if gives && !asks { Some(Nature::Writes) } else { None };
        let told = method.max(sent).max(Some(least).filter(|least| *least != Nature::ReadOnly));
        told.or_else(|| gives.then_some(Nature::ReadOnly))
    }

    /// The options among some words, each with its value, as the program itself would take them apart.
    fn given<'w>(&self, words: &'w [String]) -> Vec<(Given<'w>, Option<&'w str>)> {
        let mut given = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let next = words.get(at + 1).map(String::as_str);
            if let Some(long) = word.strip_prefix("--") {
                let (name, value) =
                    long.split_once('=').map_or((long, next), |(name, value)| (name, Some(value)));
                given.push((Given::Long(name), value));
            } else if let Some(bundle) = word.strip_prefix('-') {
                for (letter_at, letter) in bundle.char_indices() {
                    let rest = &bundle[letter_at + letter.len_utf8()..];
                    let rest = rest.strip_prefix('=').unwrap_or(rest);
                    let value = if rest.is_empty() { next } else { Some(rest) };
                    given.push((Given::Short(letter), value));
                    if self.valued.contains(letter) {
                        break;
                    }
                }
            }
        }
        given
    }
}

/// Where an answer can go without a file being made.
fn is_no_file(value: &str) -> bool {
    value == "-" || value.starts_with("/dev/")
}

/// One option as it is given.
#[derive(Clone, Copy)]
enum Given<'w> {
    Short(char),
    Long(&'w str),
}

impl Options {
    /// A long option may be cut short as long as it is clear which one is meant.
    fn has(&self, given: Given<'_>) -> bool {
        match given {
            Given::Short(letter) => self.short.contains(letter),
            Given::Long(name) => {
                self.long.iter().any(|long| *long == name || name.len() > 4 && long.starts_with(name))
            }
        }
    }
}

/// `http POST a.example x=1`: a method among the words, or something to send, which is sent without one as well.
fn worded(command: &Command) -> Nature {
    let is_method = |word: &&str| word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    if let Some(method) = command.operands().find(is_method) {
        return nature_of_method(&method.to_lowercase());
    }
    let sends =
        command.operands().any(is_sent) || command.has_flag(&["--raw", "--form", "-f", "--multipart"]);
    let is_fed =
        command.redirections.iter().any(|from| from.stream == Stream::Input && from.target != "/dev/null");
    if sends || is_fed { Nature::Writes } else { Nature::ReadOnly }
}

/// Whether a word behind the address is sent: `name=value`, `name:=json`, `name@file`. A header (`name:value`) and a part of
/// the address (`name==value`) are not.
fn is_sent(word: &str) -> bool {
    let Some(at) = word.find(['=', ':', '@']) else { return false };
    let sign = &word[at..];
    let is_address = sign.starts_with("://") || word.contains('/');
    at > 0
        && !is_address
        && (sign.starts_with(":=")
            || sign.starts_with('@')
            || sign.starts_with('=') && !sign.starts_with("=="))
}
