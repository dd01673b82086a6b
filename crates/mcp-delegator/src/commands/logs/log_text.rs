//! The streams of a task in plain words: the events of the agent as a person reads them, lines of the other
//! streams with the name of the stream. It continues where it stopped, so that new output can be added.

use delegator_engine::omitted_bytes;
use delegator_registry::TaskFile;
use delegator_transcript::{
    Dialect, Effect, FoldOptions, Framer, Headlines, LineLimits, LineSummarizer, LineText, LogDetail,
    ThreadEvent,
};

use crate::commands::events::source::task_dialect;
use crate::commands::prelude::*;

#[derive(Debug)]
pub struct LogText {
    options: FoldOptions,
    framer: Framer,
    summarizer: LineSummarizer,
    headlines: Headlines,
    working_dir: String,
    is_plain: bool,
    detail: LogDetail,
}

impl LogText {
    pub fn new(
        context: &Context<'_>,
        engine: &Engine,
        id: &TaskId,
        detail: LogDetail,
    ) -> Result<LogText, AppError> {
        let dialect = task_dialect(context, engine, id)?;
        let options = FoldOptions { dialect, ..FoldOptions::default() };
        Ok(LogText {
            framer: Framer::new(LineLimits::STANDARD),
            summarizer: LineSummarizer::new(options.clone()),
            options,
            headlines: Headlines::default(),
            working_dir: engine.results().task(id)?.working_dir,
            is_plain: dialect == Some(Dialect::Plain),
            detail,
        })
    }

    /// The events begin anew.
    pub fn restart(&mut self) {
        self.framer = Framer::new(LineLimits::STANDARD);
        self.summarizer = LineSummarizer::new(self.options.clone());
        self.headlines = Headlines::default();
    }

    /// Passes on the text of each event or line in these whole lines, and its event if it has one.
    pub fn take(
        &mut self,
        stream: TaskFile,
        lines: &[u8],
        mut on_text: impl FnMut(Option<&ThreadEvent<'_>>, String),
    ) {
        let text = String::from_utf8_lossy(lines);
        let label = match stream {
            TaskFile::Events if self.is_plain => {
                text.lines()
                    .for_each(|line| on_text(None, omission(line).unwrap_or_else(|| line.to_owned())));
                return;
            }
            TaskFile::Events => return self.events(lines, on_text),
            TaskFile::Setup => "setup",
            TaskFile::Stderr => "stderr",
            _ => "verify",
        };
        text.lines().for_each(|line| on_text(None, format!("{label}: {line}")));
    }

    fn events(&mut self, bytes: &[u8], mut on_text: impl FnMut(Option<&ThreadEvent<'_>>, String)) {
        let Self { framer, summarizer, headlines, working_dir, detail, .. } = self;
        // The last line of a stream may have no line end.
        let line_end: &[u8] = if bytes.last().is_none_or(|last| *last == b'\n') { b"" } else { b"\n" };
        framer.push(&[bytes, line_end].concat(), |line| {
            if let LineText::Whole(text) = line.text()
                && let Some(omission) = omission(&text)
            {
                on_text(None, omission);
            }
            summarizer.push_line_with(&line, |effect| {
                if let Effect::Emit(event) = effect
                    && let Some(text) = headlines.log_text(event, Some(working_dir), *detail)
                {
                    on_text(Some(event), text);
                }
            });
        });
    }
}

fn omission(line: &str) -> Option<String> {
    omitted_bytes(line).map(|bytes| format!("[{bytes} bytes omitted]"))
}
