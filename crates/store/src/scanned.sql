
-- Transcripts that were read, since format 2: which file, and how far. Nothing of what stands in them.
CREATE TABLE scanned (
    file TEXT    PRIMARY KEY,                   -- its device and number, or a print of its path where it has none
    head INTEGER NOT NULL,                      -- a print of its beginning: a file that took its place has another
    read INTEGER NOT NULL,                      -- so many bytes need not be read again
    size INTEGER NOT NULL                       -- its size when it was last read
) WITHOUT ROWID;
