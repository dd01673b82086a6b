//! Prints the streams of a task line by line: all that is stored, then, if requested, new lines until the
//! task ends.

use delegator_domain::terminal;
use delegator_engine::omitted_bytes;
use delegator_registry::{NewBytes, ReadPosition, TaskDir, TaskFile};
use delegator_transcript::{
    Dialect, Effect, FoldOptions, Framer, Headlines, LineLimits, LineSummarizer, LineText, LogDetail,
};

use crate::commands::events::follow::RESTARTED;
use crate::commands::events::source::task_dialect;
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
    dir: &TaskDir,
    mut lines: impl LineSink,
    follow: bool,
) -> Result<(Task, u64), AppError> {
    let mut streams = [TaskFile::Setup, TaskFile::Events, TaskFile::Stderr, TaskFile::Verify]
        .map(|file| (file, ReadPosition::default()));
    let mut bytes = 0;
    let mut print_new = |is_last: bool| -> Result<(), PrintEnd> {
        for (file, position) in &mut streams {
            let NewBytes { bytes: mut new, is_restarted } =
                dir.read_new(*file, position).map_err(EngineError::from)?;
            if !is_last {
                let complete = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
                position.offset -= (new.len() - complete) as u64;
                new.truncate(complete);
            }
            bytes += new.len() as u64;
            let flow = if is_restarted { lines.restart(*file)? } else { Flow::Continue };
            if flow == Flow::Stop || lines.take(*file, &new)? == Flow::Stop {
                return Err(PrintEnd::ReaderGone);
            }
        }
        Ok(())
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

/// Events in plain words; lines of the other streams with the name of the stream.
pub(super) struct LogLines<'a> {
    context: &'a Context<'a>,
    options: FoldOptions,
    framer: Framer,
    summarizer: LineSummarizer,
    headlines: Headlines,
    working_dir: String,
    is_plain: bool,
    detail: LogDetail,
}

impl<'a> LogLines<'a> {
    pub(super) fn new(
        context: &'a Context<'a>,
        engine: &Engine,
        id: &TaskId,
        detail: LogDetail,
    ) -> Result<LogLines<'a>, AppError> {
        let dialect = task_dialect(context, engine, id)?;
        let options = FoldOptions { dialect, ..FoldOptions::default() };
        Ok(LogLines {
            context,
            framer: Framer::new(LineLimits::STANDARD),
            summarizer: LineSummarizer::new(options.clone()),
            options,
            headlines: Headlines::default(),
            working_dir: engine.results().task(id)?.working_dir,
            is_plain: dialect == Some(Dialect::Plain),
            detail,
        })
    }

    fn events(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut texts = Vec::new();
        let Self { framer, summarizer, headlines, working_dir, detail, .. } = self;
        // The last line of a stream may have no line end.
        let line_end: &[u8] = if bytes.last().is_none_or(|last| *last == b'\n') { b"" } else { b"\n" };
        framer.push(&[bytes, line_end].concat(), |line| {
            if let LineText::Whole(text) = line.text() {
                texts.extend(omission(&text));
            }
            summarizer.push_line_with(&line, |effect| {
                if let Effect::Emit(event) = effect {
                    texts.extend(headlines.log_text(event, Some(working_dir), *detail));
                }
            });
        });
        texts
    }
}

fn omission(line: &str) -> Option<String> {
    omitted_bytes(line).map(|bytes| format!("[{bytes} bytes omitted]"))
}

impl LineSink for LogLines<'_> {
    fn restart(&mut self, stream: TaskFile) -> Result<Flow, AppError> {
        if stream != TaskFile::Events {
            return Ok(Flow::Continue);
        }
        self.framer = Framer::new(LineLimits::STANDARD);
        self.summarizer = LineSummarizer::new(self.options.clone());
        self.headlines = Headlines::default();
        self.context.screen.write_lines(format!("{RESTARTED}\n").as_bytes())
    }

    fn take(&mut self, stream: TaskFile, lines: &[u8]) -> Result<Flow, AppError> {
        let text = String::from_utf8_lossy(lines);
        let labelled = |label: &str| text.lines().map(|line| format!("{label}: {line}")).collect();
        let texts: Vec<String> = match stream {
            TaskFile::Events if self.is_plain => {
                text.lines().map(|line| omission(line).unwrap_or_else(|| line.to_owned())).collect()
            }
            TaskFile::Events => self.events(lines),
            TaskFile::Setup => labelled("setup"),
            TaskFile::Stderr => labelled("stderr"),
            _ => labelled("verify"),
        };
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
