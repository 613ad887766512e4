//! What each agent accepts as an answer, as strictly as the strictest of them reads it: an unknown field, a wrong type or a
//! word it does not heed fails. `allow` is in none of these schemas.
#![allow(dead_code, reason = "that the fields can be read is all that is asked")]

use serde::Deserialize;
use serde_json::{Map, Value};
use unstuck_wire::hook::Host;

type Object = Map<String, Value>;

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Deny {
    Deny,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum DenyOrAsk {
    Deny,
    Ask,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Block {
    Block,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Context {
    #[serde(rename = "hookEventName")]
    event: String,
    #[serde(rename = "additionalContext")]
    context: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Claude {
    r#continue: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<Block>,
    reason: Option<String>,
    hook_specific_output: Option<ClaudeOutput>,
}

#[derive(Deserialize)]
#[serde(tag = "hookEventName", deny_unknown_fields)]
enum ClaudeOutput {
    #[serde(rename_all = "camelCase")]
    PreToolUse {
        permission_decision: Option<DenyOrAsk>,
        permission_decision_reason: Option<String>,
        updated_input: Option<Object>,
        additional_context: Option<String>,
    },
    PermissionRequest {
        decision: Ruling,
    },
    #[serde(rename_all = "camelCase")]
    PostToolUse {
        additional_context: String,
    },
    #[serde(rename_all = "camelCase")]
    PostToolUseFailure {
        additional_context: String,
    },
    #[serde(rename_all = "camelCase")]
    PostToolBatch {
        additional_context: String,
    },
    #[serde(rename_all = "camelCase")]
    UserPromptSubmit {
        additional_context: String,
    },
    #[serde(rename_all = "camelCase")]
    SessionStart {
        additional_context: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ruling {
    behavior: Deny,
    message: String,
}

/// Codex and Qwen Code: of all that Claude Code knows they heed this.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Kin {
    hook_specific_output: KinOutput,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum KinOutput {
    Context(Context),
    Refusal(Refusal),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Refusal {
    hook_event_name: PreToolUse,
    permission_decision: Deny,
    permission_decision_reason: String,
}

#[derive(Deserialize)]
enum PreToolUse {
    PreToolUse,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Gemini {
    r#continue: Option<bool>,
    stop_reason: Option<String>,
    system_message: Option<String>,
    decision: Option<Deny>,
    reason: Option<String>,
    hook_specific_output: Option<GeminiOutput>,
}

#[derive(Deserialize)]
#[serde(tag = "hookEventName", deny_unknown_fields)]
enum GeminiOutput {
    BeforeTool {
        tool_input: Object,
    },
    #[serde(rename_all = "camelCase")]
    AfterTool {
        additional_context: Option<String>,
        tail_tool_call_request: Option<Tail>,
    },
    #[serde(rename_all = "camelCase")]
    BeforeAgent {
        additional_context: String,
    },
    #[serde(rename_all = "camelCase")]
    SessionStart {
        additional_context: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tail {
    name: String,
    args: Object,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Opencode {
    deny: Option<String>,
    args: Option<Object>,
    say: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Copilot {
    Own(CopilotOwn),
    Claude(CopilotClaude),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CopilotOwn {
    permission_decision: Option<Deny>,
    permission_decision_reason: Option<String>,
    modified_args: Option<Object>,
    additional_context: Option<String>,
}

/// Only before a call does it heed what is said in the shape of Claude Code.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CopilotClaude {
    hook_specific_output: CopilotOutput,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CopilotOutput {
    hook_event_name: PreToolUse,
    permission_decision: Option<Deny>,
    permission_decision_reason: Option<String>,
    updated_input: Option<Object>,
    additional_context: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cursor {
    permission: Option<Deny>,
    user_message: Option<String>,
    agent_message: Option<String>,
    additional_context: Option<String>,
}

/// Reads an answer as the agent would; says what it would not accept.
pub(crate) fn accepts(host: Host, answer: &str) -> Result<(), String> {
    fn read<T: for<'a> Deserialize<'a>>(answer: &str) -> Result<(), String> {
        serde_json::from_str::<T>(answer).map(drop).map_err(|error| error.to_string())
    }
    match host {
        Host::Claude => read::<Claude>(answer),
        Host::Codex | Host::Qwen => read::<Kin>(answer),
        Host::Gemini => read::<Gemini>(answer),
        Host::Opencode => read::<Opencode>(answer),
        Host::Copilot => read::<Copilot>(answer),
        Host::Cursor => read::<Cursor>(answer),
        Host::Generic => Err("its answers are lines of our own".to_owned()),
    }
}

#[test]
fn these_schemas_refuse_what_the_agents_refuse() {
    for (host, answer) in [
        (Host::Claude, r#"{"hookSpecificOutput":{"additionalContext":"no event"}}"#),
        (
            Host::Claude,
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#,
        ),
        (Host::Claude, r#"{"additionalContext":"at the top"}"#),
        (
            Host::Codex,
            r#"{"continue":false,"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"x"}}"#,
        ),
        (
            Host::Codex,
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"x"}}"#,
        ),
        (Host::Gemini, r#"{"decision":"allow"}"#),
        (
            Host::Copilot,
            r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"nested"}}"#,
        ),
        (Host::Cursor, r#"{"permission":"allow"}"#),
        (Host::Opencode, r#"{"throw":"x"}"#),
    ] {
        assert!(accepts(host, answer).is_err(), "{host} {answer}");
    }
}
