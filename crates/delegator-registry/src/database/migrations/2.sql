-- The result of the verify command; NULL: the task has none.
ALTER TABLE tasks ADD COLUMN verification TEXT;
-- Lines that changed during the task; NULL if they were not counted.
ALTER TABLE tasks ADD COLUMN lines_added INTEGER;
ALTER TABLE tasks ADD COLUMN lines_deleted INTEGER;

-- What `history` and `usage` find tasks by, besides their rows. It is taken from the files of a task by the first
-- query after the task was submitted, and again by the first one after its end.
CREATE TABLE history (
  task         INTEGER PRIMARY KEY REFERENCES tasks (seq) ON DELETE CASCADE,
  has_ended    INTEGER NOT NULL,
  -- The top of the work tree of its working directory; without one, that directory.
  repository   TEXT NOT NULL
) STRICT;

-- The words of the texts; the texts themselves are in the files. The rowid is the seq of the task. No trigger deletes
-- its rows: a program of the first version has no fts5.
CREATE VIRTUAL TABLE history_text USING fts5 (title, task, message, content = '', contentless_delete = 1);
