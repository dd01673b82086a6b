//! What the holder of a token may do.

use delegator_domain::named_enum;

named_enum! {
    /// Each includes those before it.
    pub enum Scope {
        /// Look at tasks and their results.
        Read = "read",
        /// Also answer questions, send messages and mark results as read.
        Answer = "answer",
        /// Everything.
        Write = "write",
    }
}
