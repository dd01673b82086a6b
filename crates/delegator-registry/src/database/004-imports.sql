-- When a session was imported. Retention counts from here: the session itself may have ended long before.
ALTER TABLE tasks ADD COLUMN imported_at_ms INTEGER;

-- The time of earlier imports was not recorded; they count from now on.
UPDATE tasks SET imported_at_ms = CAST(unixepoch('subsec') * 1000 AS INTEGER)
  WHERE seq IN (SELECT task FROM labels WHERE key = 'imported' AND value = 'true');

CREATE INDEX tasks_retention ON tasks (coalesce(imported_at_ms, ended_at_ms)) WHERE ended_order IS NOT NULL;
