-- What a task used, as its agent told it at the end. A task without a row told nothing.
CREATE TABLE usage (
  task                    INTEGER PRIMARY KEY REFERENCES tasks (seq) ON DELETE CASCADE,
  input_tokens            INTEGER NOT NULL,
  cached_input_tokens     INTEGER NOT NULL,
  output_tokens           INTEGER NOT NULL,
  reasoning_output_tokens INTEGER NOT NULL
) STRICT;
