//! An agent at work: its calls reach the store as they do in life, through `unstuck hook generic`.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Said, World};

/// When the first call of a made-up day is asked for: 2026-01-21 15:30:16Z.
pub(crate) const MORNING: u64 = 1_769_009_416_000;

/// Has all that was learnt so far count as if the hooks of an agent had told of it: what comes by the open door teaches nothing that
/// is told on.
pub(crate) fn watched(world: &World) {
    let database = rusqlite::Connection::open(world.path(".local/state/unstuck/timeline.db")).unwrap();
    database.busy_timeout(Duration::from_secs(10)).unwrap();
    database.execute("UPDATE OR IGNORE lesson_place SET source = 'hook'", []).unwrap();
}

/// Names for calls that need none in particular.
static COUNTER: AtomicU32 = AtomicU32::new(1);

/// One call from its beginning to its end.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) session: &'a str,
    /// The host's name for it; any, where it is empty.
    pub(crate) key: &'a str,
    pub(crate) command: &'a str,
    pub(crate) exit: i32,
    pub(crate) stderr: &'a str,
    /// When it is asked for; now, where nothing is said.
    pub(crate) at: Option<u64>,
    pub(crate) took_ms: u64,
}

pub(crate) const FINE: Work<'_> =
    Work { session: "s1", key: "", command: "true", exit: 0, stderr: "", at: None, took_ms: 100 };
/// A failure whose cause is certain and stays.
pub(crate) const MISSING: Work<'_> =
    Work { command: "frob ci", exit: 127, stderr: "bash: frob: command not found", ..FINE };

impl Work<'_> {
    fn before(&self) -> Value {
        let mut payload = json!({
            "event": "before", "session": self.session, "call_id": self.key, "tool": "Bash",
            "input": { "command": self.command }, "cwd": "/nowhere",
        });
        if let Some(at) = self.at {
            payload["at"] = Value::from(at);
        }
        payload
    }

    fn after(&self) -> Value {
        let mut payload = self.before();
        payload["event"] = Value::from("after");
        payload["exit_code"] = Value::from(self.exit);
        payload["stderr"] = Value::from(self.stderr);
        payload["duration_ms"] = Value::from(self.took_ms);
        if let Some(at) = self.at {
            payload["at"] = Value::from(at + self.took_ms);
        }
        payload
    }

    /// Both halves of the call, as a host hands them in.
    pub(crate) fn lines(&self) -> String {
        format!("{}\n{}\n", self.before(), self.after())
    }
}

/// Does the work, each half of a call in a hook process of its own. A call that is refused does not run.
#[track_caller]
pub(crate) fn work(world: &World, calls: &[Work<'_>]) {
    for call in calls {
        let key = format!("call-{}", COUNTER.fetch_add(1, Ordering::Relaxed));
        let call = Work { key: if call.key.is_empty() { &key } else { call.key }, ..*call };
        let answer = hook(world, &call.before().to_string()).json();
        assert_eq!(answer["kept"], "recorded", "{answer}");
        if answer["decision"] == "allow" {
            assert_eq!(hook(world, &call.after().to_string()).json()["kept"], "recorded");
        }
    }
}

pub(crate) fn hook(world: &World, payloads: &str) -> Said {
    // No program is there: what is told to be missing is missing.
    let mut child = world.command(&["hook", "generic"]).env("PATH", "/nowhere").spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || pipe.write_all(payloads.as_bytes()).ok());
        Said::by(child)
    })
}
