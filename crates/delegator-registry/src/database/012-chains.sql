-- Chains: a task may follow another one. Its predecessor may be pruned before it.
ALTER TABLE tasks ADD COLUMN follows TEXT;
-- 'success' or 'failure'.
ALTER TABLE tasks ADD COLUMN follows_on TEXT;
-- The seq of the predecessor until it has ended. Unlike an id, a seq is never used again.
ALTER TABLE tasks ADD COLUMN awaits INTEGER;

CREATE INDEX tasks_follows ON tasks (follows) WHERE follows IS NOT NULL;
CREATE INDEX tasks_awaits ON tasks (awaits) WHERE awaits IS NOT NULL;
