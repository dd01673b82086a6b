//! Statements of tests, run by `psql`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const FIELD: char = '\u{1f}';
const ROW: char = '\u{1e}';

/// Each statement is a transaction of its own unless the text has `begin`. The error is what `psql` printed.
pub(super) fn run(url: &str, sql: &str) -> Result<Vec<Vec<String>>, String> {
    let mut psql = Command::new(super::template::program("psql"));
    psql.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"]);
    psql.arg(format!("--field-separator={FIELD}")).arg(format!("--record-separator={ROW}")).arg(url);
    psql.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = psql.spawn().unwrap();
    // The write fails if the connection was refused.
    let _ = child.stdin.take().expect("stdin is piped").write_all(sql.as_bytes());
    let output = child.wait_with_output().unwrap();
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let rows = text.strip_suffix('\n').map(|rows| rows.split(ROW));
    Ok(rows.into_iter().flatten().map(|row| row.split(FIELD).map(str::to_owned).collect()).collect())
}

/// A connection that stays open, for a transaction with a lock. Dropping it ends the transaction.
#[derive(Debug)]
pub struct PsqlSession {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl PsqlSession {
    pub(super) fn open(url: &str) -> PsqlSession {
        let mut psql = Command::new(super::template::program("psql"));
        psql.args(["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", url]);
        let mut process = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let output = BufReader::new(process.stdout.take().expect("stdout is piped"));
        PsqlSession { process, input, output }
    }

    /// Runs statements to their end.
    pub fn run(&mut self, sql: &str) {
        let input = self.input.as_mut().expect("an open connection");
        input.write_all(format!("{sql}\n\\echo complete\n").as_bytes()).unwrap();
        let mut line = String::new();
        while line.trim() != "complete" {
            line.clear();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "psql ended after: {sql}");
        }
    }
}

impl Drop for PsqlSession {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
