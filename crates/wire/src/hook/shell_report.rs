//! The report in which Gemini CLI, and Qwen Code after it, tell how a shell command ended: its output between a head and a tail
//! of lines with names.

use unstuck_judge::Outcome;

/// What may stand before the output.
const HEAD: [&str; 2] = ["Command: ", "Directory: "];
const OUTPUT: &str = "Output: ";
/// What may stand after it. Only there: a command may print such lines itself.
const TAIL: [&str; 5] = ["Error: ", "Exit Code: ", "Signal: ", "Background PIDs: ", "Process Group PGID: "];
/// What is said of a command that was stopped, by how it begins.
const STOPPED: [(&str, Outcome); 3] = [
    ("Command was automatically cancelled because it exceeded the timeout", Outcome::TimedOut),
    ("Command timed out", Outcome::TimedOut),
    ("Command was cancelled", Outcome::Interrupted),
];

/// How a command of a shell tool ended, and what it printed; nothing where the text is no such report. What any other tool
/// says is never one, whatever it looks like: a file may hold every word of it.
pub(crate) fn read(report: &str) -> Option<(Outcome, String)> {
    let report = unwrapped(report);
    if let Some((_, outcome)) = STOPPED.iter().find(|(words, _)| report.starts_with(words)) {
        return Some((*outcome, report.to_owned()));
    }
    let (mut code, mut signal, mut error) = (None, None, None);
    let mut body = report;
    loop {
        let (before, line) = body.rsplit_once('\n').unwrap_or(("", body));
        if body.is_empty() || !TAIL.iter().any(|name| line.starts_with(name)) {
            break;
        }
        let value = |name| line.strip_prefix(name).map(str::trim).filter(|value: &&str| is_said(value));
        code = code.or_else(|| value("Exit Code: ")?.parse().ok());
        signal = signal.or_else(|| value("Signal: ")?.parse().ok());
        error = error.or_else(|| value("Error: "));
        body = before;
    }
    // Without a tail, or a head, it is a text like any other.
    let begins = body.starts_with(OUTPUT) || HEAD.iter().any(|name| body.starts_with(name));
    if body.len() == report.len() || !begins {
        return None;
    }
    while HEAD.iter().any(|name| body.starts_with(name)) && !body.starts_with(OUTPUT) {
        // A command may have several lines.
        let at = HEAD.iter().filter_map(|name| body.find(&format!("\n{name}"))).min();
        let output = body.find(&format!("\n{OUTPUT}"));
        body = match (at, output) {
            (Some(at), Some(output)) => &body[at.min(output) + 1..],
            (Some(at), None) | (None, Some(at)) => &body[at + 1..],
            (None, None) => "",
        };
    }
    let printed = body.strip_prefix(OUTPUT).unwrap_or(body);
    let printed = if is_said(printed) { printed } else { "" };
    let outcome = match (signal, code) {
        (Some(signal), _) => Outcome::Signalled { signal },
        (None, Some(code)) => Outcome::Exited { code },
        // It names no code that is 0.
        (None, None) => Outcome::Exited { code: 0 },
    };
    let printed = match error {
        Some(error) if printed.is_empty() => error.to_owned(),
        Some(error) => format!("{printed}\n{error}"),
        None => printed.to_owned(),
    };
    Some((outcome, printed))
}

/// A text without the marks that say that it came from outside.
pub(crate) fn unwrapped(text: &str) -> &str {
    let text = text.trim();
    let inner =
        text.strip_prefix("<untrusted_context>").and_then(|text| text.strip_suffix("</untrusted_context>"));
    inner.map_or(text, str::trim)
}

fn is_said(value: &str) -> bool {
    !matches!(value.trim(), "" | "(none)" | "(empty)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(report: &str, expected: &str) {
        let shown = match read(report) {
            Some((outcome, printed)) => format!("{outcome:?} {printed:?}"),
            None => "no report".to_owned(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_tail_tells_how_it_ended_and_the_output_does_not() {
        check(
            "<untrusted_context>\nOutput: a\nExit Code: 9\nb\nProcess Group PGID: 7\n</untrusted_context>",
            r#"Exited { code: 0 } "a\nExit Code: 9\nb""#,
        );
        check(
            "<untrusted_context>\nOutput: (empty)\nSignal: 9\nProcess Group PGID: 7\n</untrusted_context>",
            r#"Signalled { signal: 9 } """#,
        );
        check(
            "Command: a\nb\nDirectory: (root)\nOutput: x\nError: (none)\nExit Code: 3\nSignal: (none)\nProcess Group PGID: (none)",
            r#"Exited { code: 3 } "x""#,
        );
        check("Output: x\nError: spawn failed\nExit Code: 1", r#"Exited { code: 1 } "x\nspawn failed""#);
    }

    #[test]
    fn a_command_that_was_stopped_has_no_tail() {
        check(
            "Command timed out after 5ms before it could complete.",
            r#"TimedOut "Command timed out after 5ms before it could complete.""#,
        );
        check(
            "Command was cancelled by user before it could complete.",
            r#"Interrupted "Command was cancelled by user before it could complete.""#,
        );
    }

    #[test]
    fn any_other_text_is_no_report() {
        check("", "no report");
        check("\n\n", "no report");
        check("plain words\nof a tool", "no report");
        check("<untrusted_context>\nfine\n</untrusted_context>", "no report");
        check("words\nExit Code: 3", "no report");
        check("Command: x", "no report");
    }
}
