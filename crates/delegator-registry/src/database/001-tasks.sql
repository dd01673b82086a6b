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
