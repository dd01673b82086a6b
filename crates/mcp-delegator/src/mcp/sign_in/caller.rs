//! Who sent a request, and what they may do.

use crate::commands::sign_in::{Scope, Secret, Session, Sessions, csrf_token};

#[derive(Debug, Clone)]
pub struct Caller {
    pub scope: Scope,
    /// `None`: it sent the bearer token.
    pub session: Option<CallerSession>,
}

#[derive(Debug, Clone)]
pub struct CallerSession {
    pub session: Session,
    pub csrf_token: String,
    pub secret: Secret,
    sessions: Sessions,
}

impl CallerSession {
    pub fn end(&self) -> std::io::Result<()> {
        self.sessions.revoke(&self.session).map(drop)
    }

    /// Whether it was revoked since the request began, or nothing has used it for too long.
    pub fn has_ended(&self) -> bool {
        !self.sessions.has(&self.session)
    }
}

impl Caller {
    pub fn with_token(scope: Scope) -> Caller {
        Caller { scope, session: None }
    }

    /// A session never has more rights than the server's token.
    pub fn with_session(sessions: &Sessions, session: Session, secret: &str, server: Scope) -> Caller {
        let (scope, csrf_token) = (session.scope.min(server), csrf_token(secret));
        let (secret, sessions) = (Secret::received(secret), sessions.clone());
        Caller { scope, session: Some(CallerSession { session, csrf_token, secret, sessions }) }
    }
}
