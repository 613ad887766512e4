// The benchmark's peer in Node: what a hook that keeps count looks like with nothing but Node's own modules. It counts each
// session's failures by call in a JSON file, under a lock and replaced whole, tells the model about a failure, and refuses a
// call that failed three times. Nothing else uses it.
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync, unlinkSync, writeFileSync } from "node:fs";

const LIMIT = 3;
const STALE_MS = 2000;

const folder = `${process.env.XDG_STATE_HOME}/peer-node`;
const payload = JSON.parse(readFileSync(0, "utf8"));
const state = `${folder}/${payload.session_id.replace(/[^A-Za-z0-9-]/g, "_")}.json`;
const key = JSON.stringify([payload.tool_name, payload.tool_input]);

function counts() {
  try {
    return JSON.parse(readFileSync(state, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return {};
    throw error;
  }
}

function locked(work) {
  const lock = `${state}.lock`;
  for (;;) {
    try {
      closeSync(openSync(lock, "wx"));
      break;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
      const held = statSync(lock, { throwIfNoEntry: false });
      // Whoever held it for so long was killed.
      if (held && Date.now() - held.mtimeMs > STALE_MS) unlinkSync(lock);
      else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
  try {
    return work();
  } finally {
    unlinkSync(lock);
  }
}

function say(event, fields) {
  process.stdout.write(`${JSON.stringify({ hookSpecificOutput: { hookEventName: event, ...fields } })}\n`);
}

if (payload.hook_event_name === "PreToolUse") {
  const count = counts()[key] ?? 0;
  if (count >= LIMIT) {
    const reason = `This call failed ${count} times already.`;
    say("PreToolUse", { permissionDecision: "deny", permissionDecisionReason: reason });
  }
} else if (payload.hook_event_name === "PostToolUseFailure") {
  mkdirSync(folder, { recursive: true });
  const count = locked(() => {
    const all = counts();
    all[key] = (all[key] ?? 0) + 1;
    writeFileSync(`${state}.new`, JSON.stringify(all));
    renameSync(`${state}.new`, state);
    return all[key];
  });
  say("PostToolUseFailure", { additionalContext: `This call has failed ${count} times.` });
}
