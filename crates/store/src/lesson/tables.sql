-- Lessons, since format 2. Times and words as in schema.sql.

-- What was seen to fix a cause. Calls of the agent itself, never words of an output.
CREATE TABLE lesson (
    id               INTEGER PRIMARY KEY,
    cause            TEXT    NOT NULL,
    fix              TEXT    NOT NULL,          -- the print of the fix
    kind             TEXT    NOT NULL,
    rule             TEXT    NOT NULL,
    tool             TEXT    NOT NULL,
    program          TEXT    NOT NULL,          -- what failed, in a word or two
    title            TEXT    NOT NULL,          -- the line that showed the cause
    body             TEXT    NOT NULL,          -- the fix as JSON
    state            TEXT    NOT NULL,          -- seen, approved, imported, quarantined, merged, forgotten
    origin           TEXT    NOT NULL DEFAULT 'seen', -- whose words the fix is in: seen, imported, written
    caution          TEXT,                      -- why it is not shown before a person has approved it
    wins             INTEGER NOT NULL,
    losses           INTEGER NOT NULL,
    losses_since_win INTEGER NOT NULL,
    shown            INTEGER NOT NULL,
    followed         INTEGER NOT NULL,
    worked           INTEGER NOT NULL DEFAULT 0,
    first_at         INTEGER NOT NULL,
    won_at           INTEGER NOT NULL,
    UNIQUE (cause, fix)
);
CREATE INDEX lesson_age ON lesson (won_at);

-- Where it won and lost.
CREATE TABLE lesson_place (
    lesson INTEGER NOT NULL,
    place  TEXT    NOT NULL,                    -- the root of a repository, or a folder
    wins   INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    PRIMARY KEY (lesson, place)
) WITHOUT ROWID;

-- Which sessions that came from, so that it can be taken back with them.
CREATE TABLE lesson_source (
    lesson  INTEGER NOT NULL,
    session INTEGER NOT NULL,
    place   TEXT    NOT NULL,
    wins    INTEGER NOT NULL,
    losses  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (lesson, session, place)
) WITHOUT ROWID;
CREATE INDEX lesson_source_by_session ON lesson_source (session);

-- Lessons that a session was shown, and what followed.
CREATE TABLE lesson_shown (
    session INTEGER NOT NULL,
    lesson  INTEGER NOT NULL,
    call    INTEGER NOT NULL,                   -- the failure it was shown with
    at      INTEGER NOT NULL,
    outcome TEXT    NOT NULL,                   -- open, runs, worked, failed, other, given_up
    PRIMARY KEY (session, lesson)
) WITHOUT ROWID;
CREATE INDEX lesson_shown_by_lesson ON lesson_shown (lesson, outcome);
-- Lessons that say which call takes the place of one that is asked for.
CREATE INDEX lesson_change ON lesson (CASE WHEN json_valid(body) THEN json_extract(body, '$.change.from') END)
    WHERE CASE WHEN json_valid(body) THEN json_extract(body, '$.change.from') END IS NOT NULL;

-- The last failures of a session that were not got over, however many came before them.
CREATE INDEX call_failed ON call (session) WHERE state = 'failed' AND recovered_at IS NULL;

-- What was missing on this machine when a call needed it: a program, another machine, a flag.
CREATE TABLE stopper (
    root    INTEGER PRIMARY KEY,                -- the print of what was missing
    cause   TEXT    NOT NULL,
    kind    TEXT    NOT NULL,
    rule    TEXT    NOT NULL,
    line    TEXT    NOT NULL,                   -- the line that showed it
    met     INTEGER NOT NULL,                   -- how often
    door    TEXT    NOT NULL,                   -- the door that told of it; empty where that was not seen to work both ways
    session INTEGER NOT NULL,                   -- the session that met it last
    told    INTEGER NOT NULL,                   -- the session that knows of it already
    at      INTEGER NOT NULL
);
CREATE INDEX stopper_age ON stopper (at);
