//! What is known of client programs: how long they wait for a tool.

use std::time::Duration;

/// How long a client waits for a call, as it is when nobody configures anything else: by the beginning of what it calls itself.
const PATIENCE: [(&str, u64); 8] = [
    ("claude-code", 24 * 60 * 60),
    ("codex", 300),
    ("gemini", 600),
    ("qwen", 600),
    ("opencode", 60),
    ("cline", 60),
    ("github-copilot", 60),
    ("copilot", 60),
];
/// The least that any of them waits. Whoever is not known waits at least as long.
const LEAST: u64 = 60;

/// How long after a call was asked for it may be sent again: its answer has to come while the client still waits for it.
pub(super) fn retry_within(client: Option<&str>) -> Duration {
    let name = client.unwrap_or_default().to_ascii_lowercase();
    let known = PATIENCE.iter().find(|(begins, _)| name.starts_with(begins));
    let patience = known.map_or(LEAST, |(_, seconds)| *seconds);
    // A quarter is left for the last attempt itself.
    Duration::from_secs(patience) * 3 / 4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_client_is_taken_for_the_least_patient_one() {
        let check =
            |client, seconds| assert_eq!(retry_within(client), Duration::from_secs(seconds), "{client:?}");
        check(None, 45);
        check(Some("somebody"), 45);
        // The desktop program, which has little of the other's patience.
        check(Some("claude-ai"), 45);
        check(Some("claude-code"), 18 * 60 * 60);
        check(Some("codex-mcp-client"), 225);
        check(Some("gemini-cli-mcp-client"), 450);
        check(Some("Cline"), 45);
    }
}
