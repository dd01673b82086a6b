-- Tasks that a provider runs elsewhere. A task without a provider runs on this machine.
ALTER TABLE tasks ADD COLUMN provider TEXT;
ALTER TABLE tasks ADD COLUMN environment TEXT;
-- The provider's own id and web page of the task; NULL until the provider has accepted it.
ALTER TABLE tasks ADD COLUMN remote_id TEXT;
ALTER TABLE tasks ADD COLUMN remote_url TEXT;
-- When the provider was last queried about the task, and how often.
ALTER TABLE tasks ADD COLUMN checked_at_ms INTEGER;
ALTER TABLE tasks ADD COLUMN checks INTEGER NOT NULL DEFAULT 0;

-- The queue of this machine, and what runs on it.
CREATE INDEX tasks_local_state ON tasks (provider, state);
-- The tasks of providers.
CREATE INDEX tasks_remote_state ON tasks (state, provider) WHERE provider IS NOT NULL;
