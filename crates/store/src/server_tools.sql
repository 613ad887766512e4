
-- Tools as servers last offered them, since format 3: what tells whether one is described otherwise than before. Nothing of
-- what the descriptions say.
CREATE TABLE server_tool (
    server   TEXT    NOT NULL,
    tool     TEXT    NOT NULL,                  -- the server's own name for it
    digest   TEXT    NOT NULL,                  -- of its description, its schemas and its annotations
    first_at INTEGER NOT NULL,
    last_at  INTEGER NOT NULL,                  -- when it was last offered
    offered  INTEGER NOT NULL,                  -- 1 where it was in the newest list
    PRIMARY KEY (server, tool)
) WITHOUT ROWID;
