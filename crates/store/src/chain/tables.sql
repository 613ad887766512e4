-- The chain of the timeline, since format 4.

ALTER TABLE event ADD COLUMN link BLOB;     -- a hash over this event and the link before it; null before the chain began
ALTER TABLE event ADD COLUMN record BLOB;   -- a hash over what the row of its call says since this event, where it says something new

-- Events that unstuck itself removed, so that a gap in the numbers can be told from a row that somebody took out.
CREATE TABLE event_cut (
    last  INTEGER PRIMARY KEY,
    first INTEGER NOT NULL,
    link  BLOB,                             -- the link of the last of them, on which the next event may build
    why   TEXT    NOT NULL                  -- expired, purged, lost
);

INSERT INTO fact (name, value)
    SELECT 'chain_from', CAST(ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'event'), 0) + 1 AS TEXT);
