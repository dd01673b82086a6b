//! How a browser signs in to the dashboard: a one-time code in a link begins a session, and a cookie continues it.

mod caller;
mod cookie;
mod rate_limit;
mod sessions;

pub use caller::{Caller, CallerSession};
pub use cookie::SessionCookie;
pub use rate_limit::RateLimit;
pub use sessions::{CODE_LIFETIME, Secret, Session, SessionId, Sessions};
