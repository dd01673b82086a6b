-- Restore points of tasks whose row is gone. They outlive it while they hold content that no branch has.
CREATE TABLE restore_points (
  task             TEXT NOT NULL,
  repository       TEXT NOT NULL,
  reference        TEXT NOT NULL,
  -- As restore-point.json had it.
  point            TEXT NOT NULL,
  task_ended_at_ms INTEGER NOT NULL,
  -- Why it is kept; NULL until it has been examined.
  reason           TEXT,
  tried_at_ms      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task, repository, reference)
) STRICT, WITHOUT ROWID;

CREATE INDEX restore_points_tried ON restore_points (tried_at_ms);
