-- What every version of the program can rely on: how new a program must be to write here.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
  -- The place in the queue and the order of everything: clocks go backwards, this does not.
  seq                   INTEGER PRIMARY KEY AUTOINCREMENT,
  id                    TEXT NOT NULL UNIQUE,
  state                 TEXT NOT NULL,
  created_at_ms         INTEGER NOT NULL,
  claimed_at_ms         INTEGER,
  started_at_ms         INTEGER,
  ended_at_ms           INTEGER,
  -- transitions.n of the end: who ended after whom, whatever the clock said.
  ended_order           INTEGER,
  updated_at_ms         INTEGER NOT NULL,

  working_dir           TEXT NOT NULL,
  work_tree             TEXT,
  allow_parallel_writes INTEGER NOT NULL DEFAULT 0,
  mode                  TEXT NOT NULL,
  agent                 TEXT NOT NULL,
  model                 TEXT,
  title                 TEXT NOT NULL,
  labels                TEXT NOT NULL,
  input                 TEXT NOT NULL,
  resumed_thread        TEXT,
  thread_id             TEXT,
  idempotency_key       TEXT,
  request_hash          TEXT,

  starts                INTEGER NOT NULL DEFAULT 0,
  nonce                 TEXT,
  boot_id               TEXT,
  pid                   INTEGER,
  start_time            INTEGER,
  pid_ns                INTEGER,
  containment           TEXT,

  cancel_requested_at_ms INTEGER,
  cancel_reason         TEXT,

  exit_code             INTEGER,
  exit_signal           INTEGER,
  failure_kind          TEXT,
  failure_message       TEXT,
  retry_at              TEXT,
  limit_kind            TEXT,
  end_reason            TEXT,
  ran_ms                INTEGER,
  summary               TEXT,
  kill_incomplete       TEXT,
  read_at_ms            INTEGER,

  -- The trees of a task's additional directories, as a JSON array; the tree of its working directory is in work_tree.
  more_work_trees       TEXT,
  -- When a session was imported. Retention counts from here: the session itself may have ended long before.
  imported_at_ms        INTEGER,
  -- Whether a sandbox enforces the mode. If not, the task may write in every mode.
  mode_enforced         INTEGER NOT NULL DEFAULT 1,
  -- What enforces the mode: the agent itself, we, or nothing. NULL if the task ran elsewhere.
  sandbox               TEXT,

  -- Tasks that a provider runs elsewhere. A task without a provider runs on this machine.
  provider              TEXT,
  environment           TEXT,
  -- The provider's own id and web page of the task; NULL until the provider has accepted it.
  remote_id             TEXT,
  remote_url            TEXT,
  -- When the provider was last queried about the task, and how often.
  checked_at_ms         INTEGER,
  checks                INTEGER NOT NULL DEFAULT 0,

  -- What a task used besides tokens, for budgets; NULL if its agent did not report it.
  turns                 INTEGER,
  -- Millionths of a US dollar.
  cost_microdollars     INTEGER,
  -- How many other agents may run the task if its agent cannot. Such a task is not held back by a pause of its agent.
  fallbacks             INTEGER NOT NULL DEFAULT 0,

  -- The worktree in which a task works: the id of the task for which it was created. NULL: it works in the user's directory.
  worktree              TEXT,

  -- Chains: a task may follow another one. Its predecessor may be pruned before it.
  follows               TEXT,
  -- 'success' or 'failure'.
  follows_on            TEXT,
  -- The seq of the predecessor until it has ended. Unlike an id, a seq is never used again.
  awaits                INTEGER,

  -- For which ends of the task notifications are sent, and through which channels: "completed,failed/webhook". NULL: none.
  notify                TEXT,

  -- Groups: several attempts at one task. The attempts are numbered from 1.
  group_id              TEXT,
  attempt               INTEGER,
  -- The group with which a task was submitted, or else the first task of its chain. NULL: neither.
  submission            TEXT,

  CHECK ((ended_at_ms IS NULL) = (ended_order IS NULL)),
  CHECK ((idempotency_key IS NULL) = (request_hash IS NULL))
) STRICT;

CREATE INDEX tasks_state ON tasks (state);
CREATE INDEX tasks_created ON tasks (created_at_ms);
CREATE INDEX tasks_dir ON tasks (working_dir, state, created_at_ms);
CREATE INDEX tasks_ended ON tasks (ended_order, ended_at_ms, state) WHERE ended_order IS NOT NULL;
CREATE INDEX tasks_unread ON tasks (working_dir, read_at_ms, ended_order, id)
  WHERE ended_order IS NOT NULL AND read_at_ms IS NULL;
CREATE INDEX tasks_thread ON tasks (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX tasks_resumed ON tasks (resumed_thread) WHERE resumed_thread IS NOT NULL;
CREATE UNIQUE INDEX tasks_key ON tasks (idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX tasks_retention ON tasks (coalesce(imported_at_ms, ended_at_ms)) WHERE ended_order IS NOT NULL;
-- The queue of this machine, and what runs on it.
CREATE INDEX tasks_local_state ON tasks (provider, state);
-- The tasks of providers.
CREATE INDEX tasks_remote_state ON tasks (state, provider) WHERE provider IS NOT NULL;
CREATE INDEX tasks_worktree ON tasks (worktree, state) WHERE worktree IS NOT NULL;
CREATE INDEX tasks_follows ON tasks (follows) WHERE follows IS NOT NULL;
CREATE INDEX tasks_awaits ON tasks (awaits) WHERE awaits IS NOT NULL;
CREATE UNIQUE INDEX tasks_group ON tasks (group_id, attempt) WHERE group_id IS NOT NULL;
CREATE INDEX tasks_submission ON tasks (submission) WHERE submission IS NOT NULL;

CREATE TABLE transitions (
  n          INTEGER PRIMARY KEY AUTOINCREMENT,
  task       INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  from_state TEXT,
  to_state   TEXT NOT NULL,
  at_ms      INTEGER NOT NULL,
  cause      TEXT NOT NULL
) STRICT;

CREATE INDEX transitions_task ON transitions (task);

CREATE TABLE labels (
  key   TEXT NOT NULL,
  value TEXT NOT NULL,
  task  INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  PRIMARY KEY (key, value, task)
) STRICT, WITHOUT ROWID;

CREATE INDEX labels_task ON labels (task);

-- Rows that are gone while their directory may still be there.
CREATE TABLE forgotten (
  id TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- What a task used, as its agent told it at the end. A task without a row told nothing.
CREATE TABLE usage (
  task                    INTEGER PRIMARY KEY REFERENCES tasks (seq) ON DELETE CASCADE,
  input_tokens            INTEGER NOT NULL,
  cached_input_tokens     INTEGER NOT NULL,
  output_tokens           INTEGER NOT NULL,
  reasoning_output_tokens INTEGER NOT NULL
) STRICT;

-- Restore points of tasks whose row is gone. They outlive it while they hold content that no branch has.
CREATE TABLE restore_points (
  task             TEXT NOT NULL,
  repository       TEXT NOT NULL,
  reference        TEXT NOT NULL,
  -- As restore-point.json had it.
  point            TEXT NOT NULL,
  task_ended_at_ms INTEGER NOT NULL,
  -- Why it is kept; NULL until it has been examined.
  reason           TEXT,
  tried_at_ms      INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (task, repository, reference)
) STRICT, WITHOUT ROWID;

CREATE INDEX restore_points_tried ON restore_points (tried_at_ms);

-- Messages to agents. The text is in a file of the task's directory until the message is settled.
CREATE TABLE messages (
  task            INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  -- 1, 2, … per task.
  number          INTEGER NOT NULL,
  -- The name of the file.
  file            TEXT NOT NULL,
  delivery        TEXT NOT NULL,
  state           TEXT NOT NULL,
  -- Why it failed, or why its delivery is unknown.
  reason          TEXT,
  excerpt         TEXT NOT NULL,
  bytes           INTEGER NOT NULL,
  sent_at_ms      INTEGER NOT NULL,
  delivered_at_ms INTEGER,
  settled_at_ms   INTEGER,
  PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX messages_state ON messages (task, state, delivery, number);

-- Questions of agents.
CREATE TABLE questions (
  task           INTEGER NOT NULL REFERENCES tasks (seq) ON DELETE CASCADE,
  -- 1, 2, … per task.
  number         INTEGER NOT NULL,
  kind           TEXT NOT NULL,
  title          TEXT NOT NULL,
  detail         TEXT,
  -- A JSON array.
  options        TEXT NOT NULL,
  free_text      INTEGER NOT NULL,
  asked_at_ms    INTEGER NOT NULL,
  expires_at_ms  INTEGER NOT NULL,
  state          TEXT NOT NULL,
  -- The position of the chosen option in `options`.
  answer_option  INTEGER,
  answer_text    TEXT,
  -- The name of the file with the unredacted text, until the supervisor has read it.
  answer_file    TEXT,
  closed_at_ms   INTEGER,
  PRIMARY KEY (task, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX questions_open ON questions (task, number) WHERE state = 'open';

-- Agents whose queued tasks do not start for now.
CREATE TABLE agent_pauses (
  agent     TEXT PRIMARY KEY,
  -- NULL: until it is resumed.
  until_ms  INTEGER,
  reason    TEXT NOT NULL,
  -- The task whose end caused it.
  task      TEXT,
  since_ms  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Worktrees, each created for one task and possibly used by later ones.
CREATE TABLE worktrees (
  task          INTEGER PRIMARY KEY REFERENCES tasks (seq) ON DELETE CASCADE,
  owner         TEXT NOT NULL UNIQUE,
  path          TEXT NOT NULL,
  -- As the engine describes it: repository, commit, branch.
  facts         TEXT NOT NULL,
  -- NULL until it was created.
  created_at_ms INTEGER,
  -- When its changes were last applied.
  applied_at_ms INTEGER,
  -- When it was removed; the row stays as long as its task.
  removed_at_ms INTEGER,
  -- Its size when it was last measured.
  bytes         INTEGER
) STRICT;

CREATE INDEX worktrees_present ON worktrees (task) WHERE removed_at_ms IS NULL;

-- The outbox: one row per channel for each task, group and chain that has ended.
CREATE TABLE notifications (
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

CREATE INDEX notifications_task ON notifications (task);
CREATE INDEX notifications_pending ON notifications (due_at_ms) WHERE state = 'pending';
CREATE INDEX notifications_failed ON notifications (settled_at_ms) WHERE state = 'failed';
