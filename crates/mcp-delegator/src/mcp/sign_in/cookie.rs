//! The cookie of a session. Cookies do not distinguish ports, so its name has the port: two servers on one host do not
//! overwrite each other's.

use http::{HeaderMap, HeaderValue, header};

use crate::commands::sign_in::IDLE_LIFETIME;

/// Each costs a look into the stored sessions.
const MAX_CANDIDATES: usize = 8;

#[derive(Debug, Clone)]
pub struct SessionCookie {
    name: String,
    /// Browsers send it only over HTTPS.
    is_secure: bool,
}

impl SessionCookie {
    pub fn new(port: u16, is_secure: bool) -> SessionCookie {
        SessionCookie { name: format!("mcp-delegator-{port}"), is_secure }
    }

    /// What a browser sent under this name. A program at another port of the host can add cookies of its own, which
    /// must not hide the secret.
    pub fn candidates<'a>(&self, headers: &'a HeaderMap) -> impl Iterator<Item = &'a str> {
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.filter(|(name, _)| *name == self.name).map(|(_, secret)| secret).take(MAX_CANDIDATES)
    }

    pub fn set(&self, secret: &str) -> Option<HeaderValue> {
        self.header(secret, IDLE_LIFETIME.as_secs())
    }

    fn header(&self, secret: &str, seconds: u64) -> Option<HeaderValue> {
        let secure = if self.is_secure { "; Secure" } else { "" };
        let name = &self.name;
        let text = format!("{name}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
        HeaderValue::from_str(&text).ok()
    }

    /// Makes the browser forget it.
    pub fn unset(&self) -> Option<HeaderValue> {
        self.header("", 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cookies_of_this_server_count() {
        let cookie = SessionCookie::new(7788, false);
        for (lines, expected) in [
            (vec!["a=b; mcp-delegator-7788=x; c=d"], vec!["x"]),
            (vec!["mcp-delegator-7788=x", "a=b"], vec!["x"]),
            (vec!["mcp-delegator-7788=x", "mcp-delegator-7788=y"], vec!["x", "y"]),
            (vec!["mcp-delegator-7789=x"], vec![]),
            (vec!["xmcp-delegator-7788=x"], vec![]),
            (vec![], vec![]),
        ] {
            let mut headers = HeaderMap::new();
            for line in &lines {
                headers.append(header::COOKIE, HeaderValue::from_static(line));
            }
            assert_eq!(cookie.candidates(&headers).collect::<Vec<_>>(), expected, "{lines:?}");
        }
        let set = SessionCookie::new(1, true).set("s").unwrap();
        assert_eq!(set, "mcp-delegator-1=s; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict; Secure");
    }
}
