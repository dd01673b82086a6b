//! How a browser is signed in to the dashboard: a link with a one-time code begins a session.

mod browser;
mod link;
mod open_page;
mod scope;
mod sessions;

pub use link::qr_code;
pub use open_page::{OpenInput, SignInLink, page_of, sign_in_link};
pub use scope::Scope;
pub use sessions::{CODE_LIFETIME, IDLE_LIFETIME, Secret, Session, SessionId, Sessions, csrf_token};
