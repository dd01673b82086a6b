//! The open task: its four tabs, and how far the shown one is scrolled. Pure.

use delegator_domain::named_enum;
use delegator_domain::task::TaskId;

use crate::watch::diff_pane::DiffPane;
use crate::watch::lines::{Look, TextLine, Top};
use crate::watch::log::Log;

named_enum! {
    pub enum Tab {
        Overview = "overview",
        Timeline = "timeline",
        Output = "output",
        Diff = "diff",
    }
}

impl Tab {
    pub fn beside(self, by: isize) -> Tab {
        let at = Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Tab::ALL[at.saturating_add_signed(by).min(Tab::ALL.len() - 1)]
    }
}

/// What is read in the background; `None` until then.
pub type Loadable<T> = Option<Result<T, String>>;

pub fn loaded_lines<T>(value: &Loadable<T>, lines: impl FnOnce(&T) -> Vec<TextLine>) -> Vec<TextLine> {
    match value {
        None => vec![TextLine::new(Look::Dim, "loading …")],
        Some(Ok(value)) => lines(value),
        Some(Err(problem)) => TextLine::all(Look::Bad, problem),
    }
}

#[derive(Debug, Clone)]
pub struct TaskView {
    pub id: TaskId,
    pub tab: Tab,
    pub top: Top,
    pub overview: Loadable<String>,
    pub log: Log,
    pub diff: Loadable<DiffPane>,
}

impl TaskView {
    pub fn new(id: TaskId) -> TaskView {
        let (tab, top) = (Tab::Overview, Top::At(0));
        TaskView { id, tab, top, overview: None, log: Log::default(), diff: None }
    }

    pub fn show(&mut self, tab: Tab) {
        if tab != self.tab {
            let is_log = matches!(tab, Tab::Timeline | Tab::Output);
            (self.tab, self.top) = (tab, if is_log { Top::End } else { Top::At(0) });
        }
    }

    /// The lines of the tab; `live` is what the live view knows about the task.
    pub fn lines(&self, live: Vec<TextLine>) -> Vec<TextLine> {
        match self.tab {
            Tab::Overview => {
                let text = loaded_lines(&self.overview, |text| TextLine::all(Look::Plain, text));
                live.into_iter().chain([TextLine::default()]).chain(text).collect()
            }
            Tab::Timeline => self.log.timeline(),
            Tab::Output => self.log.output(),
            Tab::Diff => loaded_lines(&self.diff, DiffPane::lines),
        }
    }

    pub fn diff_pane(&mut self) -> Option<&mut DiffPane> {
        if self.tab == Tab::Diff { self.diff.as_mut()?.as_mut().ok() } else { None }
    }
}
