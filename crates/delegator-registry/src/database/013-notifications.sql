-- For which ends of the task notifications are sent, and through which channels: "completed,failed/webhook". NULL: none.
ALTER TABLE tasks ADD COLUMN notify TEXT;

-- The outbox: one row per ended task and channel.
CREATE TABLE notifications (
  task          INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  channel       TEXT NOT NULL,
  -- pending, delivered or failed.
  state         TEXT NOT NULL,
  -- Attempts that were begun.
  attempts      INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  -- When the next attempt may begin.
  due_at_ms     INTEGER NOT NULL,
  -- Why the last attempt failed.
  last_error    TEXT,
  settled_at_ms INTEGER,
  PRIMARY KEY (task, channel)
) STRICT, WITHOUT ROWID;

CREATE INDEX notifications_pending ON notifications (due_at_ms) WHERE state = 'pending';
CREATE INDEX notifications_failed ON notifications (settled_at_ms) WHERE state = 'failed';
