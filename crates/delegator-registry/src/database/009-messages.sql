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
