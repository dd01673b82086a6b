-- Whether a sandbox enforces the mode. If not, the task may write in every mode.
ALTER TABLE tasks ADD COLUMN mode_enforced INTEGER NOT NULL DEFAULT 1;
