#!/usr/bin/env bash
# What a hook that keeps count looks like in shell: it reads the payload with jq, counts failures in a row under a lock, and
# appends a line. The benchmark runs it beside `unstuck hook generic`; nothing else uses it.
set -eu
state="$XDG_STATE_HOME/tracker"
mkdir -p "$state"
payload=$(cat)
IFS=$'\t' read -r event session code < <(jq -r '[.event, .session, (.exit_code // 0)] | @tsv' <<<"$payload")
exec 9>"$state/lock"
flock 9
count=$(cat "$state/count-${session//[^A-Za-z0-9-]/_}" 2>/dev/null || echo 0)
if [ "$event" = after ]; then
    if [ "$code" = 0 ]; then count=0; else count=$((count + 1)); fi
    echo "$count" >"$state/count-${session//[^A-Za-z0-9-]/_}"
fi
jq -c --argjson count "$count" '{at: now, event, session, call_id, tool, input, exit_code, stderr, count: $count}' \
    <<<"$payload" >>"$state/timeline.jsonl"
if [ "$count" -ge 3 ]; then echo '{"decision":"deny"}'; else echo '{"decision":"allow"}'; fi
