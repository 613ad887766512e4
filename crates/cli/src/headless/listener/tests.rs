//! Lines as the programs print them: taken from real runs, shortened where they are long.

use super::*;
use crate::headless::program::Own;

/// What was heard: session, whether the model moved, how it ended, its answer, what went wrong.
fn check(tongue: &Tongue, output: &str, expected: (Option<&str>, bool, Told, &str, &str)) {
    // In one piece, and byte by byte.
    for size in [output.len().max(1), 1] {
        let mut listener = Listener::new(tongue);
        output.as_bytes().chunks(size).for_each(|piece| listener.hear(piece));
        listener.close();
        let trouble = listener.trouble.text();
        let heard = (
            listener.session.as_deref(),
            listener.has_moved,
            listener.told,
            listener.answer.as_str(),
            trouble.trim_end(),
        );
        assert_eq!(heard, expected, "{output}");
    }
}

#[test]
fn claude_tells_its_session_its_answer_and_its_end() {
    let output = r#"{"type":"system","subtype":"init","session_id":"575f15c1-8bf8","tools":["Task","Bash"]}
{"type":"assistant","message":{"model":"claude-opus-5-5","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"echo one"}}]},"session_id":"575f15c1-8bf8"}
{"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"error: no such host","is_error":true}]},"session_id":"575f15c1-8bf8"}
{"type":"assistant","message":{"model":"claude-opus-5-5","content":[{"type":"text","text":"All done"}]},"session_id":"575f15c1-8bf8"}
{"duration_api_ms":110,"session_id":"575f15c1-8bf8","is_error":false,"subtype":"success","result":"All done","type":"result"}
"#;
    check(&Tongue::Claude, output, (Some("575f15c1-8bf8"), true, Told::Well, "All done", ""));
}

#[test]
fn claude_that_no_model_answers_has_not_moved() {
    let output = r#"{"type":"system","subtype":"init","session_id":"1907f53f-9d4d"}
{"type":"assistant","message":{"model":"<synthetic>","content":[{"type":"text","text":"API Error: 529 Overloaded."}]},"session_id":"1907f53f-9d4d","error":"server_error","is_api_error_message":true}
{"terminal_reason":"api_error","is_error":true,"subtype":"success","api_error_status":529,"session_id":"1907f53f-9d4d","result":"API Error: 529 Overloaded.","type":"result"}
"#;
    let twice = "API Error: 529 Overloaded.\nAPI Error: 529 Overloaded.";
    check(&Tongue::Claude, output, (Some("1907f53f-9d4d"), false, Told::Badly, "", twice));
}

#[test]
fn claude_that_ran_out_of_turns_ended_badly() {
    let output = r#"{"type":"result","subtype":"error_max_turns","is_error":true,"session_id":"a-1","errors":["Reached maximum number of turns (1)"]}"#;
    let reason = "Reached maximum number of turns (1)";
    check(&Tongue::Claude, output, (Some("a-1"), false, Told::Badly, "", reason));
}

#[test]
fn codex_tells_its_thread_its_last_message_and_its_end() {
    let output = r#"{"type":"thread.started","thread_id":"01a1e149-e1ad"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -lc 'echo one'","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"All done"}}
{"type":"turn.completed","usage":{"input_tokens":2}}
"#;
    check(&Tongue::Codex, output, (Some("01a1e149-e1ad"), true, Told::Well, "All done", ""));
}

#[test]
fn codex_that_is_refused_tells_why() {
    let output = r#"{"type":"thread.started","thread_id":"01a1e14c"}
{"type":"turn.started"}
{"type":"turn.failed","error":{"message":"unexpected status 503 Service Unavailable: The server is overloaded"}}
"#;
    let reason = "unexpected status 503 Service Unavailable: The server is overloaded";
    check(&Tongue::Codex, output, (Some("01a1e14c"), false, Told::Badly, "", reason));
}

#[test]
fn gemini_speaks_in_pieces_and_what_it_says_before_a_tool_is_no_answer() {
    let output = r#"{"type":"init","session_id":"f0826794-e31d","model":"gemini-2.5-pro"}
{"type":"message","role":"user","content":"say hi\n"}
{"type":"message","role":"assistant","content":"Let me look.","delta":true}
{"type":"tool_use","tool_name":"run_shell_command","tool_id":"c1","parameters":{"command":"echo one"}}
{"type":"tool_result","tool_id":"c1","status":"success","output":"one"}
{"type":"message","role":"assistant","content":"All ","delta":true}
{"type":"message","role":"assistant","content":"done","delta":true}
{"type":"result","status":"success","stats":{"total_tokens":14}}
"#;
    check(&Tongue::Gemini, output, (Some("f0826794-e31d"), true, Told::Well, "All done", ""));
}

#[test]
fn gemini_that_is_refused_tells_why() {
    let output = r#"{"type":"init","session_id":"33835690","model":"gemini-2.5-pro"}
{"type":"message","role":"user","content":"say hi\n"}
{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: The model is overloaded. Please try again later.]"}}
"#;
    let reason = "[API Error: The model is overloaded. Please try again later.]";
    check(&Tongue::Gemini, output, (Some("33835690"), false, Told::Badly, "", reason));
}

#[test]
fn words_between_the_lines_are_complaints_and_never_a_session() {
    let output = "Loaded cached credentials.\n{\"type\":\"init\",\"session_id\":\"--evil\"}\n[1,2]\n";
    check(&Tongue::Gemini, output, (None, false, Told::Nothing, "", "Loaded cached credentials.\n[1,2]"));
}

#[test]
fn a_program_of_ones_own_tells_its_session_where_the_settings_say() {
    let own = Tongue::Own(Own::told_by(&[], None, Some("session: {session}")));
    check(
        &own,
        "session: ab-12\nhello\n",
        (Some("ab-12"), true, Told::Nothing, "session: ab-12\nhello\n", ""),
    );
    check(&own, "session: -x\n", (None, true, Told::Nothing, "session: -x\n", ""));
    let quoted = Tongue::Own(Own::told_by(&[], None, Some(r#""id":"{session}""#)));
    check(&quoted, r#"{"id":"ab"}"#, (Some("ab"), true, Told::Nothing, "{\"id\":\"ab\"}\n", ""));
}

#[test]
fn a_line_that_is_too_long_is_passed_over_and_the_next_one_is_read() {
    let mut listener = Listener::new(&Tongue::Codex);
    listener.hear(b"{\"type\":\"");
    (0..9).for_each(|_| listener.hear(&vec![b'x'; 1 << 20]));
    listener.hear(b"\n{\"type\":\"thread.started\",\"thread_id\":\"after\"}\n");
    assert_eq!((listener.session.as_deref(), listener.has_moved), (Some("after"), true));
}
