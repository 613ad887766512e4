//! Whom a call speaks to, as far as its line tells: what retries achieved there may tell what the next one will achieve. Reads
//! words only.

use crate::nature;
use crate::shell::Script;

/// The longest name; what is longer is cut.
const LONGEST: usize = 160;

/// Program, sub-command and hosts of a command line, such as `curl api.example`, `pip install` or `sh deploy.sh`; the hosts that
/// another tool's line names, where it names any.
pub fn whom(line: &str, is_shell: bool) -> String {
    let script = Script::parse(line);
    let hosts = script.url_hosts().join(" ");
    let whom = match (is_shell, hosts.is_empty()) {
        (true, _) => nature::script::partner(&script, &hosts),
        (false, false) => hosts,
        (false, true) => String::new(),
    };
    whom.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, expected: &str) {
        assert_eq!(whom(line, true), expected, "{line}");
    }

    #[test]
    fn a_command_line_is_known_by_program_and_host_or_by_what_it_runs() {
        check("curl -fsS https://api.example/v1/orders/17", "curl api.example");
        check("cd app && curl -fsS https://api.example/v1/orders | jq .", "curl api.example");
        check("pip install torch==2.1", "pip install");
        check("npm ci", "npm ci");
        check("git fetch origin", "git fetch");
        check("git clone https://git.example/a.git", "git clone git.example");
        check("sh flaky.sh 4", "sh flaky.sh");
        check("python deploy.py --now", "python deploy.py");
        check("./deploy.sh --now", "deploy.sh");
        check("", "");
    }

    #[test]
    fn another_tool_is_known_by_the_hosts_it_names() {
        for (line, expected) in
            [("WebFetch https://docs.example/a?b=c", "docs.example"), ("Read src/main.rs", "")]
        {
            assert_eq!(whom(line, false), expected, "{line}");
        }
    }
}
