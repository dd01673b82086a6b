-- The group with which a task was submitted, or else the first task of its chain. NULL: neither.
ALTER TABLE tasks ADD COLUMN submission TEXT;
CREATE INDEX tasks_submission ON tasks (submission) WHERE submission IS NOT NULL;

-- The outbox: one row per channel for each task, group and chain that has ended.
CREATE TABLE new_notifications (
  -- task, group or chain.
  subject       TEXT NOT NULL,
  -- The id of the task or the group; of a chain, that of its first task.
  subject_id    TEXT NOT NULL,
  channel       TEXT NOT NULL,
  -- The task whose end this is; of a group or a chain, the one that ended last. It holds the settings.
  task          INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
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
  PRIMARY KEY (subject, subject_id, channel)
) STRICT, WITHOUT ROWID;

INSERT INTO new_notifications (subject, subject_id, channel, task, state, attempts, created_at_ms, due_at_ms, last_error, settled_at_ms)
  SELECT 'task', tasks.id, channel, task, notifications.state, attempts, notifications.created_at_ms, due_at_ms, last_error, settled_at_ms
  FROM notifications JOIN tasks ON tasks.seq = notifications.task;
DROP TABLE notifications;
ALTER TABLE new_notifications RENAME TO notifications;

CREATE INDEX notifications_task ON notifications (task);
CREATE INDEX notifications_pending ON notifications (due_at_ms) WHERE state = 'pending';
CREATE INDEX notifications_failed ON notifications (settled_at_ms) WHERE state = 'failed';
