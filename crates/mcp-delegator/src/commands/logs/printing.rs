//! Prints the streams of a task line by line: all that is stored, then, if requested, new lines until the
//! task ends.

use delegator_domain::terminal;
use delegator_registry::{NewBytes, TaskDir, TaskFile};

use crate::commands::events::follow::RESTARTED;
use crate::commands::logs::log_text::LogText;
use crate::commands::logs::streams::LogStreams;
use crate::commands::prelude::*;
use crate::output::screen::Flow;

const POLL_INTERVAL: Duration = Duration::from_millis(200);

pub(super) trait LineSink {
    fn take(&mut self, stream: TaskFile, lines: &[u8]) -> Result<Flow, AppError>;

    /// The lines of the stream so far are replaced by the following ones.
    fn restart(&mut self, _stream: TaskFile) -> Result<Flow, AppError> {
        Ok(Flow::Continue)
    }

    /// After the last line, if there was one.
    fn finish(&mut self) -> Result<Flow, AppError> {
        Ok(Flow::Continue)
    }
}

enum PrintEnd {
    ReaderGone,
    Failed(Box<AppError>),
}

impl<T: Into<AppError>> From<T> for PrintEnd {
    fn from(error: T) -> PrintEnd {
        PrintEnd::Failed(Box::new(error.into()))
    }
}

/// Returns the task as it is afterwards, and how many bytes there were.
pub(super) fn print(
    engine: &Engine,
    id: &TaskId,
    dir: TaskDir,
    mut lines: impl LineSink,
    follow: bool,
) -> Result<(Task, u64), AppError> {
    let mut streams = LogStreams::new(dir);
    let mut bytes = 0;
    let mut print_new = |is_last: bool| {
        streams.read_new(is_last, |file, NewBytes { bytes: new, is_restarted }| {
            bytes += new.len() as u64;
            let flow = if is_restarted { lines.restart(file)? } else { Flow::Continue };
            if flow == Flow::Stop || lines.take(file, &new)? == Flow::Stop {
                return Err(PrintEnd::ReaderGone);
            }
            Ok(())
        })
    };
    // The state is read before the last output, so that everything written before the end is printed.
    let _copy =
        follow.then(|| engine.remote().follow_events(&engine.results().recorded_task(id)?)).transpose()?;
    let task = if follow {
        engine.waits().with_interval(id, POLL_INTERVAL, || print_new(false))
    } else {
        engine.results().task(id).map_err(PrintEnd::from)
    };
    let printed = task.and_then(|task| {
        engine.remote().fetch_events(&task)?;
        print_new(task.state.is_terminal())?;
        Ok(task)
    });
    match printed {
        Ok(task) => {
            if bytes > 0 {
                lines.finish()?;
            }
            Ok((task, bytes))
        }
        Err(PrintEnd::ReaderGone) => Ok((engine.results().recorded_task(id)?, bytes)),
        Err(PrintEnd::Failed(error)) => Err(*error),
    }
}

/// The agent's stdout on stdout; its stderr and the output of the other commands on stderr.
pub(super) struct RawLines<'a>(pub(super) &'a Context<'a>);

impl LineSink for RawLines<'_> {
    fn take(&mut self, stream: TaskFile, lines: &[u8]) -> Result<Flow, AppError> {
        let screen = &self.0.screen;
        if stream == TaskFile::Events {
            return screen.write_lines(lines);
        }
        if !lines.is_empty() {
            screen.printer.remark(&terminal::sanitize(&String::from_utf8_lossy(lines)));
        }
        Ok(Flow::Continue)
    }
}

/// What the agent did, in plain words.
pub(super) struct LogLines<'a> {
    pub(super) context: &'a Context<'a>,
    pub(super) text: LogText,
}

impl LineSink for LogLines<'_> {
    fn restart(&mut self, stream: TaskFile) -> Result<Flow, AppError> {
        if stream != TaskFile::Events {
            return Ok(Flow::Continue);
        }
        self.text.restart();
        self.context.screen.write_lines(format!("{RESTARTED}\n").as_bytes())
    }

    fn take(&mut self, stream: TaskFile, lines: &[u8]) -> Result<Flow, AppError> {
        let mut texts = Vec::new();
        self.text.take(stream, lines, |_, text| texts.push(text));
        let style = self.context.screen.presentation.body_style();
        let wrapped = |text: &String| {
            // Further lines of a message are indented, so that each event begins at the left.
            let text = terminal::sanitize(text).replace('\n', "\n  ");
            let indented = text.lines().map(|line| style.wrap_indented(line, 2));
            indented.map(|line| format!("{}\n", line.trim_end())).collect::<String>()
        };
        let output: String = texts.iter().map(wrapped).collect();
        self.context.screen.write_lines(output.as_bytes())
    }

    fn finish(&mut self) -> Result<Flow, AppError> {
        self.context.screen.write_lines(b"\n")
    }
}
