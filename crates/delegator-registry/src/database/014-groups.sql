-- Groups: several attempts at one task. The attempts are numbered from 1.
ALTER TABLE tasks ADD COLUMN group_id TEXT;
ALTER TABLE tasks ADD COLUMN attempt INTEGER;

CREATE UNIQUE INDEX tasks_group ON tasks (group_id, attempt) WHERE group_id IS NOT NULL;
