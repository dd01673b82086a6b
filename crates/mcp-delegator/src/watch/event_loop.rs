//! One loop that waits for keys, changes of tasks, what was read and results of commands; it draws only after
//! one of them, or when a visible age changes.
//!
//! Threads feed it: the terminal, the live view, the loader and the runner of commands. They are not waited for
//! when the screen is closed, except for a command, which is not left half done.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use delegator_domain::task::TaskId;
use delegator_engine::{
    ConnectionPool, Engine, LiveChange, LiveFeed, LiveReader, LiveState, OpenScreens, Target, Update,
    Variables,
};
use jiff::Timestamp;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{Event as TerminalEvent, KeyCode, read as read_event};
use ratatui::crossterm::style::force_color_output;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::commands::prelude::*;
use crate::output::awaited_task::Attachment;
use crate::output::data::task_line::Clock;
use crate::output::full_screen::{FrameWriter, FullScreen, title_sequence};
use crate::watch::board::{Board, Key};
use crate::watch::keys::{self, Action};
use crate::watch::loader::{Loaded, Loader, Request};
use crate::watch::results::{called, loaded, reload_if_shown};
use crate::watch::runner::{CallResult, CommandRunner};
use crate::watch::state::{BOARD_INTERVAL_SEC, Effect, State, Step, View};
use crate::watch::task_view::Tab;
use crate::watch::update::{open_task, update};
use crate::watch::view::{self, layout};

enum Event {
    Terminal(TerminalEvent),
    TasksChanged,
    Loaded(Loaded),
    Called(CallResult, Step),
    /// The terminal is gone.
    Ended,
}

pub fn run(context: &Context<'_>, engine: Engine, open: Option<Target>) -> Result<(), AppError> {
    let (sender, events) = channel();
    let (requests, wanted) = channel();
    let (steps, to_run) = channel::<Step>();
    let runner = CommandRunner::new(context);
    let loaded = sender.clone();
    let on_loaded = move |read| drop(loaded.send(Event::Loaded(read)));
    start("details", move || Loader::new(runner).run(&wanted, on_loaded))?;
    let called = sender.clone();
    let run = move |step: Step| drop(called.send(Event::Called(runner.run(&step.call), step)));
    let commands = start("commands", move || to_run.into_iter().for_each(run))?;
    let connections = ConnectionPool::of_service().with_redactor(context.screen.printer.redactor().clone());
    let engine = engine.with_connections(connections);
    let feed = LiveFeed::new(engine.clone())?;
    let wake = sender.clone();
    let reader = feed.reader(None, Box::new(move || drop(wake.send(Event::TasksChanged))))?;
    let state = State {
        directory: context.process.current_dir.display().to_string(),
        is_colored: context.screen.presentation.body_style().is_colored,
        ..State::default()
    };
    force_color_output(state.is_colored);
    let (live, variables) = (LiveState::default(), variables(context));
    let shown = None;
    let mut watch =
        Watch { state, live, reader, has_changed: false, requests, steps, variables, open, engine, shown };
    let screen = OpenScreen::enter(context).map_err(|error| io_error("Preparing the terminal", &error))?;
    start_input(sender)?;
    let result = watch.run(&events, context);
    drop(screen);
    drop(watch.steps);
    drop(watch.shown);
    for running in &watch.state.running {
        context.screen.announce(&format!("Waiting for the end of: {running}"));
    }
    if !watch.state.running.is_empty() {
        let _ = commands.join();
    }
    for event in events.try_iter() {
        if let Event::Called(result, step) = event {
            context.screen.announce(&end_text(result, &step));
        }
    }
    result
}

/// What became of a command that ended after the screen was closed.
fn end_text(result: CallResult, step: &Step) -> String {
    match (result, &step.then) {
        (CallResult::NeedsConsent { reason, .. }, _) => format!("{reason}\nNothing was done."),
        (CallResult::Done(text), Some(_)) => format!("{text}\nThis was only a check."),
        (CallResult::Done(text) | CallResult::Failed(text), _) => text,
    }
}

/// The full screen until it is dropped.
struct OpenScreen<'a>(&'a Attachment);

impl<'a> OpenScreen<'a> {
    fn enter(context: &Context<'a>) -> io::Result<OpenScreen<'a>> {
        let mut hang_up = Signals::new([SIGHUP])?;
        let attachment = context.screen.attachment;
        attachment.begin_watch();
        attachment.set_full_screen(FullScreen::enter(context.screen.printer)?);
        let on_hang_up = attachment.clone();
        thread::Builder::new().name("hang-up".to_owned()).spawn(move || {
            hang_up.forever().next();
            on_hang_up.leave_full_screen();
            emulate_default_handler(SIGHUP)
        })?;
        Ok(OpenScreen(attachment))
    }
}

impl Drop for OpenScreen<'_> {
    fn drop(&mut self) {
        self.0.leave_full_screen();
    }
}

struct Watch {
    state: State,
    live: LiveState,
    reader: LiveReader,
    has_changed: bool,
    requests: Sender<Request>,
    steps: Sender<Step>,
    variables: Variables,
    /// A task or a group; opened with the first tasks.
    open: Option<Target>,
    engine: Engine,
    /// The task on the screen, of which no notification is sent.
    shown: Option<(TaskId, OpenScreens)>,
}

impl Watch {
    fn run(&mut self, events: &Receiver<Event>, context: &Context<'_>) -> Result<(), AppError> {
        let failed = |error: io::Error| io_error("Drawing the screen", &error);
        let printer = context.screen.printer;
        // Its size is that of the terminal at stdout, not that of the controlling terminal.
        let options = TerminalOptions { viewport: Viewport::Fixed(Rect::ZERO) };
        let backend = CrosstermBackend::new(FrameWriter::new(printer));
        let mut terminal = Terminal::with_options(backend, options).map_err(failed)?;
        let mut title = String::new();
        loop {
            let (columns, rows) = printer.terminal_size().unwrap_or((80, 24));
            let [columns, rows] = [columns, rows].map(|count| u16::try_from(count).unwrap_or(u16::MAX));
            if (columns, rows) != (self.state.columns, self.state.rows) {
                (self.state.columns, self.state.rows) = (columns, rows);
                terminal.resize(Rect::new(0, 0, columns, rows)).map_err(failed)?;
            }
            layout::scroll_into_view(&mut self.state);
            if title != self.state.title() {
                title = self.state.title();
                printer.draw(&title_sequence(&title)).map_err(failed)?;
            }
            terminal.draw(|frame| view::draw(frame, &self.state)).map_err(failed)?;
            let Some(received) = next_events(events, self.state.next_tick_ms()) else { return Ok(()) };
            self.state.now_ms = Timestamp::now().as_millisecond();
            received.into_iter().for_each(|event| self.handle(event, context));
            self.take_changes();
            self.mark_shown();
            for effect in std::mem::take(&mut self.state.effects) {
                match effect {
                    Effect::Quit => return Ok(()),
                    // The threads end only after this loop.
                    Effect::Load(request) => drop(self.requests.send(request)),
                    Effect::Call(step) => {
                        self.state.running.push_back(step.call.path.join(" "));
                        drop(self.steps.send(step));
                    }
                }
            }
        }
    }

    fn mark_shown(&mut self) {
        let open = match self.state.views.last() {
            Some(View::Task(view)) => Some(&view.id),
            _ => None,
        };
        if self.shown.as_ref().map(|(id, _)| id) != open {
            let mark = |id: &TaskId| (id.clone(), self.engine.screens().open(std::slice::from_ref(id)));
            self.shown = open.map(mark);
        }
    }

    fn handle(&mut self, event: Event, context: &Context<'_>) {
        match event {
            Event::Ended => self.state.effects.push(Effect::Quit),
            Event::TasksChanged => self.has_changed = true,
            Event::Loaded(read) => loaded(&mut self.state, &read),
            Event::Called(result, step) => called(&mut self.state, step, result),
            Event::Terminal(event) => {
                panic_if_requested(&event, context);
                context.screen.attachment.report_input_again();
                if let Some(action) = keys::action(&self.state, &event) {
                    update(&mut self.state, action);
                }
            }
        }
    }

    /// Shows what is new about the tasks.
    fn take_changes(&mut self) {
        let age_ms = self.state.now_ms - self.state.board.made_at_ms;
        let is_stale = u64::try_from(age_ms).unwrap_or(0) >= BOARD_INTERVAL_SEC * 1000;
        if !std::mem::take(&mut self.has_changed) && (!is_stale || self.state.board.peeks.is_empty()) {
            return;
        }
        let mut changed: Vec<TaskId> = Vec::new();
        while let Some(update) = self.reader.take_update() {
            match update {
                Update::Snapshot { state, .. } => {
                    self.live = (*state).clone();
                    changed.extend(self.live.tasks.keys().cloned());
                }
                Update::Changes { changes, .. } => {
                    for (_, change) in changes {
                        self.live.apply(&change);
                        if let LiveChange::Task(task) = change {
                            changed.push(task.id().clone());
                        }
                    }
                }
            }
        }
        let clock = Clock { now_ms: self.state.now_ms, variables: &self.variables };
        self.state.set_board(Board::of(&self.live, clock));
        reload_if_shown(&mut self.state, &changed);
        match self.open.take() {
            Some(Target::Task(task)) => {
                self.state.selected = Some(Key::Task(task.to_string()));
                open_task(&mut self.state, task, Tab::Overview);
            }
            Some(Target::Group(group)) => {
                self.state.selected = Some(Key::Submission(group.to_string()));
                update(&mut self.state, Action::Group);
            }
            None => {}
        }
    }
}

/// The next event and all that are there; none if only time has passed. `None` if there will be no more.
fn next_events(events: &Receiver<Event>, tick_ms: Option<u64>) -> Option<Vec<Event>> {
    let first = match tick_ms {
        Some(milliseconds) => match events.recv_timeout(Duration::from_millis(milliseconds)) {
            Err(RecvTimeoutError::Timeout) => None,
            received => Some(received.ok()?),
        },
        None => Some(events.recv().ok()?),
    };
    Some(first.into_iter().chain(events.try_iter()).collect())
}

/// For a test of a debug build: what a panic leaves of the terminal.
fn panic_if_requested(event: &TerminalEvent, context: &Context<'_>) {
    let is_key = matches!(event, TerminalEvent::Key(key) if key.code == KeyCode::F(12));
    let is_requested = || context.process.variable("MCP_DELEGATOR_TEST_PANIC").is_some();
    assert!(!(cfg!(debug_assertions) && is_key && is_requested()), "requested by a test");
}

fn start(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, AppError> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(work).map_err(|error| io_error("Starting a thread", &error))
}

/// Reads the terminal. Crossterm 0.29 reads on without a pause once the terminal is gone, so another thread
/// notices that and ends the loop.
fn start_input(sender: Sender<Event>) -> Result<(), AppError> {
    let ended = sender.clone();
    start("terminal-end", move || {
        let stdin = io::stdin();
        while poll(&mut [PollFd::new(&stdin, PollFlags::empty())], None).is_err() {}
        drop(ended.send(Event::Ended));
    })?;
    start("terminal", move || {
        while let Ok(event) = read_event() {
            drop(sender.send(Event::Terminal(event)));
        }
        drop(sender.send(Event::Ended));
    })?;
    Ok(())
}
