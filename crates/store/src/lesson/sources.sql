-- How calls and wins came to be known, since format 5: ran, hook, told, file, unknown (see source.rs).

ALTER TABLE call ADD COLUMN source TEXT NOT NULL DEFAULT 'unknown';

-- The same tables with the source in their key. Of what was learnt before, only what unstuck ran itself is known to have been watched.
ALTER TABLE lesson_place RENAME TO old_lesson_place;
ALTER TABLE lesson_source RENAME TO old_lesson_source;
DROP INDEX lesson_source_by_session;
CREATE TABLE lesson_place (
    lesson INTEGER NOT NULL,
    place  TEXT    NOT NULL,                    -- the root of a repository, or a folder
    wins   INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    source TEXT    NOT NULL DEFAULT 'unknown',  -- how that came to be known
    PRIMARY KEY (lesson, place, source)
) WITHOUT ROWID;
CREATE TABLE lesson_source (
    lesson  INTEGER NOT NULL,
    session INTEGER NOT NULL,
    place   TEXT    NOT NULL,
    wins    INTEGER NOT NULL,
    losses  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    source  TEXT    NOT NULL DEFAULT 'unknown',
    PRIMARY KEY (lesson, session, place, source)
) WITHOUT ROWID;
CREATE INDEX lesson_source_by_session ON lesson_source (session);
INSERT INTO lesson_source
    SELECT lesson, session, place, wins, losses, at,
        CASE WHEN (SELECT host FROM session WHERE id = old.session) IN ('run', 'http', 'agent', 'mcp', 'sdk') THEN 'ran'
            ELSE 'unknown' END
    FROM old_lesson_source AS old;
INSERT INTO lesson_place
    SELECT old.lesson, old.place, min(old.wins, sum(ran.wins)), min(old.losses, sum(ran.losses)), old.at, 'ran'
    FROM old_lesson_place AS old
        JOIN lesson_source AS ran ON ran.lesson = old.lesson AND ran.place = old.place AND ran.source = 'ran'
    GROUP BY old.lesson, old.place;
INSERT INTO lesson_place
    SELECT old.lesson, old.place, old.wins - ifnull(ran.wins, 0), old.losses - ifnull(ran.losses, 0), old.at, 'unknown'
    FROM old_lesson_place AS old
        LEFT JOIN lesson_place AS ran ON ran.lesson = old.lesson AND ran.place = old.place AND ran.source = 'ran'
    WHERE old.wins > ifnull(ran.wins, 0) OR old.losses > ifnull(ran.losses, 0);
DROP TABLE old_lesson_place;
DROP TABLE old_lesson_source;
