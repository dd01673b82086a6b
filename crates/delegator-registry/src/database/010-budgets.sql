-- What a task used besides tokens, for budgets; NULL if its agent did not report it.
ALTER TABLE tasks ADD COLUMN turns INTEGER;
-- Millionths of a US dollar.
ALTER TABLE tasks ADD COLUMN cost_microdollars INTEGER;
-- How many other agents may run the task if its agent cannot. Such a task is not held back by a pause of its agent.
ALTER TABLE tasks ADD COLUMN fallbacks INTEGER NOT NULL DEFAULT 0;
