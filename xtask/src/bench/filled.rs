//! Stores that hold much, made once and kept among the build's outputs: a million events, and whatever else is asked for.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::Fault;
use crate::world::{Call, World, copy_folder};

/// Goes up when what is filled in changes, or the tables it is filled into.
const VERSION: u32 = 8;
/// One in four calls fails. A call that goes well leaves two events, one that fails leaves four.
const CALLS: u32 = 400_000;
/// So many of them belong to one session, which is the one that is measured; the others have 200 each, and some of those
/// were never heard of again.
const LONG: u32 = 20_000;
/// The session that is measured.
pub const SESSION: &str = "session-000001";
/// Events of them all.
pub const EVENTS: u32 = CALLS / 4 * 3 * 2 + CALLS / 4 * 4;

/// Rows as the hook writes them, in one go: the wording of the texts is of no account here, their length and number are.
const FILL: &str = r#"
PRAGMA synchronous = OFF;
BEGIN;
CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @CALLS) SELECT i FROM n;
INSERT INTO session (id, name, host, cwd, first_at, last_at)
    SELECT 1000000 + i, printf('session-%06d', i), 'generic', '/srv/app', 1790000000000 + i * 400000, 1790000000000 + i * 400000 + 399000
    FROM n WHERE i <= @CALLS / 200;
INSERT INTO call (id, session, key, agent, tool, state, asked_at, ended_at, took_ms, attempt, ok, outcome, code, kind, error_type,
        retryable, rule, rung_before, rung_after, repeat, recovered_at, owner, call_print, intent_print, cause_print)
    SELECT 1000000 + i, @SESSION, printf('toolu_%08d', i), CASE i % 10 WHEN 0 THEN 'explore' ELSE 'main' END,
        CASE i % 5 WHEN 0 THEN 'Edit' WHEN 1 THEN 'Read' ELSE 'Bash' END,
        CASE WHEN i % 4 = 0 THEN 'failed' WHEN i % 100 = 1 AND i > @LONG THEN 'executing' ELSE 'completed' END, 1790000000000 + i * 2000, 1790000000900 + i * 2000, i % 3000, 1 + i % 4 / 3,
        i % 4 <> 0, 'exited', CASE i % 4 WHEN 0 THEN 1 ELSE 0 END, CASE i % 4 WHEN 0 THEN 'path_not_found' END,
        CASE i % 4 WHEN 0 THEN 'logical' END, CASE i % 4 WHEN 0 THEN 0 END, CASE i % 4 WHEN 0 THEN 'generic.missing' END,
        'observe', CASE i % 4 WHEN 0 THEN 'note' ELSE 'observe' END, i % 8 = 0, CASE i % 8 WHEN 0 THEN 1790000009000 + i * 2000 END, '',
        printf('c1:%020x', i / 2), printf('i1:%020x', i / 2), CASE i % 4 WHEN 0 THEN printf('e1:%020x', i % 2000) END
    FROM n;
INSERT INTO call_text (call, label, input, evidence, head, tail, omitted, verdict, life)
    SELECT 1000000 + i, printf('npm run task-%d', i), printf('{"command":"npm run task-%d -- --watch=false"}', i),
        CASE i % 4 WHEN 0 THEN printf('npm error code ENOENT: no such file or directory, open task-%d', i) ELSE '' END,
        printf('> app@1.0.0 task-%d%s> node scripts/task.js --watch=false%sdone in 812 ms', i, char(10), char(10)), '', 0,
        CASE i % 4 WHEN 0 THEN printf('{"ok":false,"kind":"path_not_found","rule":"generic.missing","call":%d}', i) ELSE '' END,
        printf('[{"at":%d,"state":"pending","note":""},{"at":%d,"state":"executing","note":""},{"at":%d,"state":"completed","note":""}]',
            1790000000000 + i * 2000, 1790000000000 + i * 2000, 1790000000900 + i * 2000)
    FROM n;
INSERT INTO event (at, channel, type, session, call, body)
    SELECT 1790000000000 + i * 2000 + k, CASE k WHEN 3 THEN 'monitor' ELSE 'progress' END,
        CASE k WHEN 1 THEN 'tool:start' WHEN 2 THEN 'tool:error' WHEN 3 THEN 'error' ELSE 'tool:end' END,
        @SESSION, 1000000 + i,
        CASE k WHEN 1 THEN printf('{"tool":"Bash","label":"npm run task-%d","attempt":1}', i)
            WHEN 2 THEN printf('{"call":{"id":%d,"tool":"Bash","label":"npm run task-%d"},"error":"npm error code ENOENT","kind":"path_not_found","errorType":"logical","retryable":false}', i, i)
            WHEN 3 THEN '{"severity":"warning","phase":"tool","errorType":"logical","retryable":false,"kind":"path_not_found","rule":"generic.missing","message":"npm error code ENOENT"}'
            ELSE '{"ok":true,"state":"completed","took_ms":812}' END
    FROM n JOIN (SELECT 1 k UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) WHERE i % 4 = 0 OR k IN (1, 4) ORDER BY i, k;
INSERT INTO standing (session, part, print, tick, body)
    SELECT 1000001 + i % (@CALLS / 200), i % 4, i * 2654435761 % 1000000007, i, randomblob(40) FROM n WHERE i <= @CALLS / 4;
INSERT INTO problem (cause, kind, rule, title, tools, count, first_at, last_at)
    SELECT printf('e1:%020x', i * 4 % 2000), 'path_not_found', 'generic.missing', 'npm error code ENOENT', '["Bash"]', 200,
        1790000000000, 1790800000000 FROM n WHERE i <= 500;
COMMIT;
PRAGMA wal_checkpoint(TRUNCATE);
"#;

/// A world whose store holds a million events; what is measured on it does not change the kept one.
pub fn world(unstuck: &Path) -> Result<World, Fault> {
    let kept = kept(unstuck, "events", |world| {
        let call = Call::named("first", "first".to_owned());
        world.send(&[call.before()])?;
        let fill = FILL
            .replace("@SESSION", "max(1000001, 1000001 + (i - @LONG) / 200)")
            .replace("@LONG", &LONG.to_string())
            .replace("@CALLS", &CALLS.to_string());
        Ok(timeline(world)?.execute_batch(&fill)?)
    })?;
    copied(unstuck, &kept)
}

/// The database of a world.
pub fn timeline(world: &World) -> Result<Connection, Fault> {
    Ok(Connection::open(world.store().join("timeline.db"))?)
}

/// A world whose state is a copy of this folder.
pub fn copied(unstuck: &Path, kept: &Path) -> Result<World, Fault> {
    let world = World::new(unstuck)?;
    copy_folder(kept, &world.state())?;
    // The first hook that folds its log in would wait for all of the copy to reach the disk.
    File::options().append(true).open(world.store().join("timeline.db"))?.sync_all()?;
    Ok(world)
}

/// The folder of a state that is filled once, whatever with.
pub fn kept(
    unstuck: &Path,
    what: &str,
    fill: impl FnOnce(&World) -> Result<(), Fault>,
) -> Result<PathBuf, Fault> {
    let target = unstuck.parent().and_then(Path::parent).ok_or("the binary lies nowhere")?;
    let kept = target.join(format!("bench-{what}-{VERSION}"));
    if kept.join("filled").exists() {
        return Ok(kept);
    }
    println!("filling a store with {what}, once …");
    let world = World::new(unstuck)?;
    fill(&world)?;
    copy_folder(&world.state(), &kept)?;
    fs::write(kept.join("filled"), "")?;
    Ok(kept)
}
