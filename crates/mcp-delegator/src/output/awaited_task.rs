//! The tasks that a blocking call waits for, or that it is a watch, and its full screen; shared with the signal
//! handler.

use std::io::stdin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use delegator_engine::Engine;
use indicatif::{ProgressBar, ProgressDrawTarget};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::output::full_screen::FullScreen;
use crate::output::outcome::WaitHint;

#[derive(Debug, Clone, Default)]
pub struct Attachment {
    tasks: Arc<Mutex<Option<AttachedTasks>>>,
    is_watch: Arc<AtomicBool>,
    full_screen: Arc<Mutex<Option<FullScreen>>>,
}

#[derive(Debug, Clone)]
pub struct AttachedTasks {
    pub engine: Engine,
    pub reattach: WaitHint,
    /// Time limit for cancelling them.
    pub cancel_timeout: Duration,
    /// The progress bar on stderr.
    pub bar: ProgressBar,
}

impl AttachedTasks {
    /// Removes the progress bar and hides it, because the waiting thread continues to update it.
    pub fn erase_bar(&self) {
        self.bar.finish_and_clear();
        self.bar.set_draw_target(ProgressDrawTarget::hidden());
    }
}

impl Attachment {
    pub fn set(&self, attached: Option<AttachedTasks>) {
        *self.tasks.lock().unwrap_or_else(PoisonError::into_inner) = attached;
    }

    pub fn get(&self) -> Option<AttachedTasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on Ctrl-C is how the user ends the call.
    pub fn begin_watch(&self) {
        self.is_watch.store(true, Ordering::Relaxed);
    }

    /// A signal that ends the call leaves this screen first.
    pub fn set_full_screen(&self, screen: FullScreen) {
        *self.full_screen.lock().unwrap_or_else(PoisonError::into_inner) = Some(screen);
    }

    /// Makes the system report once more that there is input, by settings that change nothing. Crossterm 0.29 forgets
    /// what comes together with a change of the size until the next key.
    pub fn report_input_again(&self) {
        // Never after the terminal was restored: that would be undone.
        let screen = self.full_screen.lock().unwrap_or_else(PoisonError::into_inner);
        if screen.is_some() {
            let _ = tcgetattr(stdin()).and_then(|raw| tcsetattr(stdin(), OptionalActions::Now, &raw));
        }
    }

    pub fn leave_full_screen(&self) {
        let screen = self.full_screen.lock().unwrap_or_else(PoisonError::into_inner).take();
        screen.iter().for_each(FullScreen::leave);
    }

    pub fn is_watch(&self) -> bool {
        self.is_watch.load(Ordering::Relaxed)
    }
}
