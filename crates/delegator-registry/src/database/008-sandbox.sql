-- What enforces the mode: the agent itself, we, or nothing. NULL if the task ran elsewhere.
ALTER TABLE tasks ADD COLUMN sandbox TEXT;
UPDATE tasks SET sandbox = CASE WHEN mode_enforced AND mode <> 'danger-full-access' THEN 'agent' ELSE 'none' END
  WHERE provider IS NULL AND imported_at_ms IS NULL;
