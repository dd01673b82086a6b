//! The task that a process belongs to, as far as a sweep has to know it.

/// The task a process belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    ThisTask,
    /// A supervisor of another task, which ends by itself. It and everything below it is not touched.
    AnotherTask,
    /// Claims to be a supervisor that is just starting, which only its recorded start can prove. It is spared
    /// for as long as a sweep may last, then killed like the rest. A supervisor killed this early has not
    /// started its task, which is then started again.
    Undecided,
}

/// Maps a pid to the task it belongs to.
pub type OwnerLookup<'a> = &'a dyn Fn(i32) -> Owner;
