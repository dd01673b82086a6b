//! Who a request comes from: the cookie of a session, and what its caller may do how often.

mod caller;
mod cookie;
mod rate_limit;

pub use caller::{Caller, CallerSession};
pub use cookie::SessionCookie;
pub use rate_limit::RateLimit;
