//! Stores that have seen much: one that knows a hundred thousand lessons, one in which a million failures were never got over,
//! and one that knows nothing.

use std::path::Path;

use rusqlite::Connection;

use super::filled::{copied, kept, timeline};
use crate::Fault;
use crate::world::{Call, World};

/// So many of them.
pub const LESSONS: u32 = 100_000;

/// Rows as they are learnt, in one go. Three lessons in five have a cause of their own, one in five says which call takes the
/// place of another, one in ten speaks Chinese, all have won, and what was missing on a machine stands beside them.
const FILL: &str = r#"
PRAGMA synchronous = OFF;
BEGIN;
CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @LESSONS) SELECT i FROM n;
INSERT INTO lesson (id, cause, fix, kind, rule, tool, program, title, body, state, wins, losses, losses_since_win, shown, followed,
        worked, first_at, won_at)
    SELECT i, printf('e1:%020x', i * 3 / 5), printf('f1:%020x', i), 'path_not_found', 'generic.missing', 'Bash', 'npm run',
        CASE i % 10 WHEN 0 THEN printf('错误：找不到第 %d 号证书，请检查配置文件', i)
            ELSE printf('npm error code ENOENT: no such file or directory, open ''config/task-%d.json''', i) END,
        CASE i % 5 WHEN 1 THEN printf('{"deeds":[],"change":{"from":"npm run task-%d","to":"npm run build:task-%d"}}', i, i)
            ELSE printf('{"deeds":[{"ran":"npm install --save-dev package-%d"},{"ran":"npm run generate -- --only %d"}],"change":null}', i, i) END,
        'seen', 2 + i % 9, i % 7 = 0, 0, i % 3, i % 3, i % 3, 1790000000000 + i * 2000, 1790000000000 + i * 3000
    FROM n;
INSERT INTO lesson_place SELECT i, printf('/srv/app-%d', i % 300), 2 + i % 9, i % 7 = 0, 1790000000000 + i * 3000, 'hook' FROM n;
INSERT INTO lesson_source SELECT i, i / 50, printf('/srv/app-%d', i % 300), 2 + i % 9, i % 7 = 0, 1790000000000 + i * 3000, 'hook' FROM n;
INSERT INTO lesson_shown SELECT i / 50, i, i, 1790000000000 + i * 3000, CASE i % 3 WHEN 1 THEN 'worked' ELSE 'other' END
    FROM n WHERE i % 3 > 0;
INSERT INTO stopper SELECT i, printf('e1:%020x', i), 'command_not_found', 'shell.missing',
    printf('bash: tool-%d: command not found', i), 1, 'claude', 1, 1, 1790000000000 + i FROM n WHERE i <= @LESSONS / 100;
COMMIT;
PRAGMA wal_checkpoint(TRUNCATE);
"#;

/// So many failures of one session that were never got over.
pub const FAILURES: u32 = 1_000_000;
/// That session.
pub const SESSION: &str = "flooded";

/// Rows as the hook writes them.
const FLOOD: &str = r#"
PRAGMA synchronous = OFF;
BEGIN;
CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @FAILURES) SELECT i FROM n;
INSERT INTO session (id, name, host, cwd, first_at, last_at) VALUES (1000, '@SESSION', 'claude', '/srv/app', 1790000000000, 1790000000000);
INSERT INTO call (id, session, key, agent, tool, state, asked_at, ended_at, took_ms, attempt, ok, outcome, code, kind, error_type,
        retryable, rule, rung_before, rung_after, repeat, owner, call_print, intent_print, cause_print)
    SELECT 1000 + i, 1000, printf('toolu_%08d', i), 'main', 'Bash', 'failed', 1790000000000 + i, 1790000000900 + i, 900, 1, 0, 'exited', 1,
        'path_not_found', 'logical', 0, 'generic.missing', 'observe', 'note', 0, '', printf('c1:%020x', i), printf('i1:%020x', i),
        printf('e1:%020x', i % 2000)
    FROM n;
INSERT INTO call_text (call, label, input, evidence, head, tail, omitted, verdict, life)
    SELECT 1000 + i, printf('npm run task-%d', i), printf('{"command":"npm run task-%d"}', i),
        printf('npm error code ENOENT: no such file or directory, open task-%d', i), '', '', 0, '{"ok":false}', '[]'
    FROM n;
COMMIT;
PRAGMA wal_checkpoint(TRUNCATE);
"#;

/// A world with nothing but a first call in it.
pub fn plain(unstuck: &Path) -> Result<World, Fault> {
    let world = World::new(unstuck)?;
    begin(&world)?;
    Ok(world)
}

/// One that knows lessons; nobody has been taught anything in its own home yet.
pub fn with_lessons(unstuck: &Path) -> Result<World, Fault> {
    let fill = FILL.replace("@LESSONS", &LESSONS.to_string());
    copied(
        unstuck,
        &kept(unstuck, "lessons", |world| begin(world)?.execute_batch(&fill).map_err(Fault::from))?,
    )
}

/// One in which a session failed a million times.
pub fn with_failures(unstuck: &Path) -> Result<World, Fault> {
    let fill = FLOOD.replace("@FAILURES", &FAILURES.to_string()).replace("@SESSION", SESSION);
    copied(
        unstuck,
        &kept(unstuck, "failures", |world| begin(world)?.execute_batch(&fill).map_err(Fault::from))?,
    )
}

/// Lets the hook make the tables.
fn begin(world: &World) -> Result<Connection, Fault> {
    world.send(&[Call::named("first", "first".to_owned()).before()])?;
    timeline(world)
}
