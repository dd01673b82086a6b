-- The worktree in which a task works: the id of the task for which it was created. NULL: it works in the user's directory.
ALTER TABLE tasks ADD COLUMN worktree TEXT;

-- Worktrees, each created for one task and possibly used by later ones.
CREATE TABLE worktrees (
  task          INTEGER PRIMARY KEY REFERENCES tasks (seq) ON DELETE CASCADE,
  owner         TEXT NOT NULL UNIQUE,
  path          TEXT NOT NULL,
  -- As the engine describes it: repository, commit, branch.
  facts         TEXT NOT NULL,
  -- NULL until it was created.
  created_at_ms INTEGER,
  -- When its changes were last applied.
  applied_at_ms INTEGER,
  -- When it was removed; the row stays as long as its task.
  removed_at_ms INTEGER,
  -- Its size when it was last measured.
  bytes         INTEGER
) STRICT;

CREATE INDEX worktrees_present ON worktrees (task) WHERE removed_at_ms IS NULL;
CREATE INDEX tasks_worktree ON tasks (worktree, state) WHERE worktree IS NOT NULL;
