#!/usr/bin/env bash
# The benchmark's peer in shell: what a hook that keeps count looks like in bash and jq, with as few processes as that takes.
# It counts each session's failures by call in a JSON file, under a lock and replaced whole, tells the model about a failure,
# and refuses a call that failed three times. Nothing else uses it.
set -eu
limit=3
folder="$XDG_STATE_HOME/peer-bash"
payload=$(</dev/stdin)
IFS=$'\t' read -r event session key < <(
    jq -r '[.hook_event_name, .session_id, ([.tool_name, .tool_input] | @json | @base64)] | @tsv' <<<"$payload"
)
state="$folder/${session//[^A-Za-z0-9-]/_}.json"
case $event in
PreToolUse)
    [ -e "$state" ] || exit 0
    exec jq -c --arg key "$key" --argjson limit "$limit" '(.[$key] // 0) as $count | select($count >= $limit) |
        {hookSpecificOutput: {hookEventName: "PreToolUse", permissionDecision: "deny",
            permissionDecisionReason: "This call failed \($count) times already."}}' "$state"
    ;;
PostToolUseFailure)
    [ -d "$folder" ] || mkdir -p "$folder"
    exec 9>"$state.lock"
    flock 9
    [ -e "$state" ] || echo '{}' >"$state"
    { read -r counts && read -r answer; } < <(
        jq -c --arg key "$key" '.[$key] += 1 | ., {hookSpecificOutput: {hookEventName: "PostToolUseFailure",
            additionalContext: "This call has failed \(.[$key]) times."}}' "$state"
    )
    printf '%s\n' "$counts" >"$state.new"
    mv "$state.new" "$state"
    printf '%s\n' "$answer"
    ;;
esac
