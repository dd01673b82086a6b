//! The whole pipeline in one object: lines or bytes in, report out.

use super::{Fold, FoldOptions, Progress, Report};
use crate::decode::{Event, IdleEvent};
use crate::event::ThreadEvent;
use crate::framer::{Framer, Line, LineLimits};
use crate::map::{Dialect, Effect, Translator};

/// Processes one stream line by line, for callers that frame the stream themselves because they also store
/// the lines.
#[derive(Debug, Default)]
pub struct LineSummarizer {
    translator: Translator,
    fold: Fold,
}

/// What a supervisor needs to know about a line at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineEffect {
    pub understood: bool,
    /// The agent made progress: an item, or the start or end of a turn. Retries do not count.
    pub is_activity: bool,
    /// The turn ended, whether successful or not.
    pub turn_ended: bool,
    /// The agent accepts messages now (idle dialect).
    pub idle: bool,
    /// The agent has ended its session (idle dialect).
    pub done: bool,
}

impl LineSummarizer {
    pub fn new(options: FoldOptions) -> Self {
        let translator = Translator::new(options.dialect).announcing(options.thread.clone());
        Self { translator, fold: Fold { options, ..Fold::default() } }
    }

    pub fn push_line(&mut self, line: &Line<'_>) -> LineEffect {
        self.push_line_with(line, |_| {})
    }

    /// Processes the next line and passes its effects to `on_effect`.
    pub fn push_line_with(&mut self, line: &Line<'_>, mut on_effect: impl FnMut(&Effect<'_>)) -> LineEffect {
        let text = line.text();
        let event = self.translator.decode(line, &text);
        let mut info = LineEffect {
            understood: event.is_understood(),
            idle: matches!(event, Event::Idle(IdleEvent::Idle)),
            done: matches!(event, Event::Idle(IdleEvent::Done)),
            ..LineEffect::default()
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

    pub fn finish(&mut self) {
        let Self { translator, fold } = self;
        translator.finish(&mut |effect| fold.on_effect(&effect));
        fold.finish(translator);
    }

    pub fn report(&self) -> Report {
        self.fold.report(&self.translator)
    }

    pub fn thread_id(&self) -> Option<&str> {
        self.fold.stored.thread_id.as_deref()
    }

    pub fn progress(&self) -> Option<Progress> {
        self.fold.stored.progress
    }

    pub fn dialect(&self) -> Option<Dialect> {
        self.translator.dialect()
    }
}

#[derive(Debug, Default)]
pub struct Summarizer {
    framer: Framer,
    lines: LineSummarizer,
}

impl Summarizer {
    pub fn new(options: FoldOptions, limits: LineLimits) -> Self {
        Self { framer: Framer::new(limits), lines: LineSummarizer::new(options) }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let Self { framer, lines } = self;
        framer.push(bytes, |line| {
            lines.push_line(&line);
        });
    }

    pub fn report(&self) -> Report {
        self.lines.report()
    }

    /// Ends the stream and returns its report.
    pub fn finish(mut self) -> Report {
        let Self { framer, lines } = &mut self;
        framer.finish(|line| {
            lines.push_line(&line);
        });
        lines.finish();
        lines.report()
    }
}
