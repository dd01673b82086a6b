//! All of it in one piece: lines in, report out.

use super::{Fold, FoldOptions, Report};
use crate::decode::decode;
use crate::event::{Event, IdleEvent, ThreadEvent};
use crate::framer::{Framer, Line, LineLimits};
use crate::map::{Dialect, Effect, Translator};

/// Follows one stream line by line: for whoever frames the stream himself because he stores the lines too.
#[derive(Debug, Default)]
pub struct LineSummarizer {
    translator: Translator,
    fold: Fold,
}

/// What a supervisor wants to know of a line at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineInfo {
    /// The line was understood.
    pub understood: bool,
    /// The agent got on with its work: an item or the beginning or end of a turn. Retries are not work.
    pub is_activity: bool,
    /// The turn is over, well or not.
    pub turn_ended: bool,
    /// Messages can be given now (dialect 003).
    pub idle: bool,
    /// The agent is done for good (dialect 003).
    pub done: bool,
}

impl LineSummarizer {
    /// An account at the beginning of a stream.
    pub fn new(options: FoldOptions) -> Self {
        Self { translator: Translator::default(), fold: Fold::new(options) }
    }

    /// Takes the next line.
    pub fn push_line(&mut self, line: &Line<'_>) -> LineInfo {
        self.push_line_with(line, |_| {})
    }

    /// Takes the next line and shows what follows from it.
    pub fn push_line_with(&mut self, line: &Line<'_>, mut on_effect: impl FnMut(&Effect<'_>)) -> LineInfo {
        let text = line.text();
        let event = decode(&text);
        let mut info = LineInfo {
            understood: event.is_understood(),
            idle: matches!(event, Event::Idle(IdleEvent::Idle)),
            done: matches!(event, Event::Idle(IdleEvent::Done)),
            ..LineInfo::default()
        };
        let Self { translator, fold } = self;
        fold.on_line(line, &event);
        translator.translate(event, &mut |effect| {
            if let Effect::Emit(event) = &effect {
                info.is_activity |= !matches!(event, ThreadEvent::Error { .. });
                info.turn_ended |=
                    matches!(event, ThreadEvent::TurnCompleted { .. } | ThreadEvent::TurnFailed { .. });
            }
            fold.on_effect(&effect);
            on_effect(&effect);
        });
        info
    }

    /// The stream is over.
    pub fn finish(&mut self) {
        self.fold.finish(&self.translator);
    }

    /// What the stream says so far.
    pub fn report(&self) -> Report {
        self.fold.report(&self.translator)
    }

    /// The thread, as soon as it is known.
    pub fn thread_id(&self) -> Option<&str> {
        self.fold.thread_id()
    }

    /// The dialect, as soon as it is known.
    pub fn dialect(&self) -> Option<Dialect> {
        self.translator.dialect()
    }
}

/// Follows one stream byte by byte.
#[derive(Debug, Default)]
pub struct Summarizer {
    framer: Framer,
    lines: LineSummarizer,
}

impl Summarizer {
    /// A summarizer at the beginning of a stream.
    pub fn new(options: FoldOptions, limits: LineLimits) -> Self {
        Self { framer: Framer::new(limits), lines: LineSummarizer::new(options) }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self { framer, lines: account } = self;
        framer.push(bytes, |line| {
            account.push_line(&line);
        });
    }

    /// What the stream says so far.
    pub fn report(&self) -> Report {
        self.lines.report()
    }

    /// The stream is over.
    pub fn finish(mut self) -> Report {
        let Self { framer, lines: account } = &mut self;
        framer.finish(|line| {
            account.push_line(&line);
        });
        account.finish();
        account.report()
    }
}
