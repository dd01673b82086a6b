-- The events besides the ends of which a task notifies: "question,budget". They are not in `notify`, because a program of an
-- earlier version could not read it.
ALTER TABLE tasks ADD COLUMN notify_later TEXT;
-- What a notification about a running task says.
ALTER TABLE notifications ADD COLUMN detail TEXT;

-- A notification about a running task has the subject `live` and the states live_pending and live_failed: programs of
-- earlier versions select rows by the states pending and failed, so they never read one.
CREATE INDEX notifications_due ON notifications (due_at_ms) WHERE state IN ('pending', 'live_pending');
CREATE INDEX notifications_given_up ON notifications (settled_at_ms) WHERE state IN ('failed', 'live_failed');
CREATE INDEX notifications_recent ON notifications (settled_at_ms) WHERE state IN ('delivered', 'dropped');
