//! What an HTTP request does to the world, by its method.

use super::Nature;
use crate::shell::Command;

/// What a request with this method, lower case, does.
pub(super) fn nature_of_method(method: &str) -> Nature {
    match method {
        "get" | "head" | "options" | "trace" => Nature::ReadOnly,
        "put" | "delete" => Nature::Idempotent,
        _ => Nature::Writes,
    }
}

/// What a `curl`, `wget` or `http` command does to the server, or nothing if its words do not say.
pub(super) fn request(command: &Command) -> Option<Nature> {
    let (method_flags, body_flags): (&[&str], &[&str]) = match command.program.as_str() {
        "curl" => (
            &["-X", "--request"],
            &[
                "-d",
                "--data",
                "--data-raw",
                "--data-binary",
                "--data-urlencode",
                "--data-ascii",
                "-F",
                "--form",
                "--json",
            ],
        ),
        "wget" => (&["--method"], &["--post-data", "--post-file", "--body-data", "--body-file"]),
        "http" | "https" | "xh" => (&[], &[]),
        _ => return None,
    };
    let args = command.args();
    for (at, word) in args.iter().enumerate() {
        for flag in method_flags {
            let rest = match word.strip_prefix(flag) {
                Some("") => args.get(at + 1).map(String::as_str),
                Some(value) => Some(value.trim_start_matches('=')),
                None => None,
            };
            if let Some(method) = rest {
                return Some(nature_of_method(&method.to_lowercase()));
            }
        }
    }
    if method_flags.is_empty() {
        let method = command.operands().next().filter(|word| word.bytes().all(|b| b.is_ascii_uppercase()));
        return Some(method.map_or(Nature::ReadOnly, |method| nature_of_method(&method.to_lowercase())));
    }
    let is_get = command.has_flag(&["-G", "--get", "-I", "--head"]);
    let gives = |word: &String| {
        body_flags.iter().any(|flag| word == flag || word.starts_with(&format!("{flag}=")))
        // `-d'{…}'` and `-Ffile=@x` stand in one word.
        || !word.starts_with("--") && (word.starts_with("-d") || word.starts_with("-F"))
    };
    if !is_get && args.iter().any(gives) {
        return Some(Nature::Writes);
    }
    if command.has_flag(&["-T", "--upload-file"]) {
        return Some(Nature::Idempotent);
    }
    None
}
