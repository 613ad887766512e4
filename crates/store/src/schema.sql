-- timeline.db, format 1. Times are milliseconds since 1970, words are the English words of the vocabulary, texts are clean.

-- A session of an agent program, under the name its host gives it.
CREATE TABLE session (
    id        INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL UNIQUE,
    host      TEXT    NOT NULL,             -- the door it came through: generic, claude, replay …
    cwd       TEXT    NOT NULL,
    first_at  INTEGER NOT NULL,
    last_at   INTEGER NOT NULL,
    paired    INTEGER NOT NULL DEFAULT 0    -- 1 once a call of it was seen both before and after it ran
);

-- One call: what is counted. Narrow, so that statistics can read all of it.
CREATE TABLE call (
    id           INTEGER PRIMARY KEY,
    session      INTEGER NOT NULL,
    key          TEXT    NOT NULL,          -- the host's name for the call; empty where it gives none
    agent        TEXT    NOT NULL,          -- `main`, or the sub-agent's name
    tool         TEXT    NOT NULL,
    state        TEXT    NOT NULL,          -- pending, approval_required, approved, executing, completed, failed, denied, sealed
    asked_at     INTEGER NOT NULL,
    ended_at     INTEGER,
    took_ms      INTEGER,
    attempt      INTEGER NOT NULL,          -- 1, and one more for each failure in a row of the same call in the session
    ok           INTEGER,                   -- 1, 0, or null while nobody knows
    outcome      TEXT,                      -- succeeded, exited, timed_out …
    code         INTEGER,                   -- the exit code or the signal
    kind         TEXT,                      -- the cause, of a failure only
    error_type   TEXT,
    retryable    INTEGER,
    rule         TEXT,
    rung_before  TEXT    NOT NULL,          -- what the ladder said before it ran: observe, hint, insist, deny, halt
    rung_after   TEXT    NOT NULL,          -- and with its result: observe, note, hint, insist
    charge       TEXT,                      -- the rule behind a refusal, `early` where it only came too soon
    world        INTEGER,                   -- how often the session's world had moved
    again_at     INTEGER,                   -- of a failure that passes by itself: when the same call may work again
    false_alarm  INTEGER,                   -- 1 where the same call went well later and nothing had changed
    repeat       INTEGER NOT NULL,          -- 1 where the failure was one the session had already met
    recovered_at INTEGER,                   -- when a later call of the same intent went well
    owner        TEXT    NOT NULL,          -- the process that runs it, as `pid:start`; empty where unknown
    sealed_from  TEXT,                      -- where it stood when it was sealed, until its session was told
    call_print   TEXT    NOT NULL,
    intent_print TEXT    NOT NULL,
    cause_print  TEXT
);
CREATE UNIQUE INDEX call_by_key ON call (session, key) WHERE key <> '';
CREATE INDEX call_by_print ON call (session, call_print);
CREATE INDEX call_unrecovered ON call (session, intent_print) WHERE state = 'failed' AND recovered_at IS NULL;
CREATE INDEX call_by_cause ON call (cause_print, id) WHERE cause_print IS NOT NULL;
-- Alerts count the calls that ended in a window.
CREATE INDEX call_by_end ON call (ended_at);
CREATE INDEX call_nameless ON call (session, call_print) WHERE key = '' AND state IN ('approval_required', 'approved', 'executing');
CREATE INDEX call_untold ON call (session) WHERE sealed_from IS NOT NULL;
CREATE INDEX call_open ON call (session, asked_at) WHERE state IN ('pending', 'approval_required', 'approved', 'executing');
CREATE INDEX call_owned ON call (session) WHERE owner <> '' AND state IN ('pending', 'approval_required', 'approved', 'executing');

-- The same call: what is read.
CREATE TABLE call_text (
    call     INTEGER PRIMARY KEY,
    label    TEXT NOT NULL,                 -- the call in one short line
    input    TEXT NOT NULL,
    evidence TEXT NOT NULL,                 -- the line that shows the cause; empty where there is none
    head     TEXT NOT NULL,                 -- the first of its output
    tail     TEXT NOT NULL,                 -- and the last of it
    omitted  INTEGER NOT NULL,              -- how many bytes stood between
    untold   TEXT,                          -- what is still to be said of it, with its result
    verdict  TEXT NOT NULL,                 -- the diagnosis and what follows from it, as JSON; empty for a success
    life     TEXT NOT NULL                  -- a JSON list of {at, state, note}
);

-- The timeline. The sequence number is the bookmark: it is given under the one write lock, so it never runs ahead of what
-- a reader can see.
CREATE TABLE event (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    channel TEXT    NOT NULL,               -- progress, monitor, control
    type    TEXT    NOT NULL,
    session INTEGER,
    call    INTEGER,
    body    TEXT    NOT NULL                -- a JSON object
);
CREATE INDEX event_by_session ON event (session, seq);
-- Alerts count what is rare; the bulk of the timeline stays out of this index.
CREATE INDEX event_rare ON event (type, at) WHERE channel <> 'progress' AND type <> 'error';

-- Where each session stands on the ladder, one row per thing remembered.
CREATE TABLE standing (
    session INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    print   INTEGER NOT NULL,
    tick    INTEGER NOT NULL,
    body    BLOB    NOT NULL,
    PRIMARY KEY (session, part, print)
) WITHOUT ROWID;

-- A cause that was met, over all sessions.
CREATE TABLE problem (
    cause        TEXT    PRIMARY KEY,
    kind         TEXT    NOT NULL,
    rule         TEXT    NOT NULL,
    title        TEXT    NOT NULL,          -- the line that showed it last
    tools        TEXT    NOT NULL,          -- a JSON list of names
    count        INTEGER NOT NULL,
    first_at     INTEGER NOT NULL,
    last_at      INTEGER NOT NULL,
    resolved_at  INTEGER,                   -- a person said so
    regressed_at INTEGER                    -- it came back after it was resolved, or after a long silence
) WITHOUT ROWID;
CREATE TABLE problem_day (
    cause TEXT    NOT NULL,
    day   INTEGER NOT NULL,                 -- days since 1970
    count INTEGER NOT NULL,
    PRIMARY KEY (cause, day)
) WITHOUT ROWID;

-- Brakes of the retry policy: budgets, breakers, past yield.
CREATE TABLE brake (
    name    TEXT    PRIMARY KEY,
    session INTEGER,                        -- whose it is; null where all share it
    at      INTEGER NOT NULL,
    body    BLOB    NOT NULL
) WITHOUT ROWID;
CREATE INDEX brake_by_session ON brake (session) WHERE session IS NOT NULL;

-- How refusals of a rule turned out. One that was often wrong only speaks from then on.
CREATE TABLE charge (
    rule         TEXT    PRIMARY KEY,
    refusals     INTEGER NOT NULL,
    false_alarms INTEGER NOT NULL,
    at           INTEGER NOT NULL
) WITHOUT ROWID;

-- Refused calls that a person lets run.
CREATE TABLE allowance (
    key   TEXT    PRIMARY KEY,              -- the short name of the call, as refusals print it
    label TEXT    NOT NULL,
    until INTEGER NOT NULL,
    at    INTEGER NOT NULL
) WITHOUT ROWID;

-- Which hooks of which agent program were heard.
CREATE TABLE heard (
    host     TEXT    NOT NULL,
    hook     TEXT    NOT NULL,              -- the program's own name for the event
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,
    count    INTEGER NOT NULL,
    PRIMARY KEY (host, hook)
) WITHOUT ROWID;

-- Alerts that fired, once per rule and window, and what became of their delivery.
CREATE TABLE alert (
    id        INTEGER PRIMARY KEY,
    name      TEXT    NOT NULL,
    window    INTEGER NOT NULL,             -- where the window begins
    at        INTEGER NOT NULL,
    value     REAL    NOT NULL,
    text      TEXT    NOT NULL,
    delivery  TEXT    NOT NULL,             -- a JSON list of {to, tries, done_at, error}
    open      INTEGER NOT NULL,             -- 1 while something is still to be delivered
    UNIQUE (name, window)
);

-- Spool lines that were taken in but may still stand in the spool.
CREATE TABLE taken (
    id TEXT    PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

-- Small facts about the store itself.
CREATE TABLE fact (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
