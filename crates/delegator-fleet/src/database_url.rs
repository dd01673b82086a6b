//! The URL of the fleet's database, and when its connection must be encrypted.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use sqlx::postgres::{PgConnectOptions, PgSslMode};

/// A valid URL. It may contain a password, which is never shown.
///
/// To another machine the connection uses TLS with a verified certificate (`sslmode=verify-full`), unless the
/// URL names another `sslmode`. The variables and the password file of `libpq` count for what the URL does
/// not contain, except for `PGSSLMODE`.
#[derive(Clone)]
pub struct DatabaseUrl {
    pub(crate) options: PgConnectOptions,
    has_password: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UrlProblem {
    #[error("it does not begin with postgres:// or postgresql://")]
    Scheme,
    /// The URL itself is not shown: it may contain a password.
    #[error("it is not a valid URL of a database")]
    Invalid,
    #[error("it names no database")]
    NoDatabase,
    #[error("it has an unknown parameter: {name}")]
    UnknownParameter { name: String },
    #[error("its sslmode is none of disable, prefer, require, verify-ca, verify-full")]
    SslMode,
}

impl DatabaseUrl {
    pub fn parse(url: &str) -> Result<DatabaseUrl, UrlProblem> {
        let url = url.trim();
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://"));
        let rest = rest.ok_or(UrlProblem::Scheme)?;
        let parameters = rest.split_once('?').map_or("", |(_, parameters)| parameters);
        check_parameters(parameters)?;
        let mut options = PgConnectOptions::from_str(url).map_err(|_| UrlProblem::Invalid)?;
        if options.get_database().is_none_or(str::is_empty) {
            return Err(UrlProblem::NoDatabase);
        }
        let has = |name: &str| {
            parameters.split('&').any(|given| given.split('=').next().is_some_and(|given| given == name))
        };
        if !has("sslmode") {
            let is_here = is_on_this_machine(&options);
            options = options.ssl_mode(if is_here { PgSslMode::Prefer } else { PgSslMode::VerifyFull });
        }
        let authority = rest.split(['/', '?']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        let has_password = user.contains(':') || has("password");
        // sqlx sets extra_float_digits when it connects, which a pooler refuses. No query reads a float.
        options = options.application_name("mcp-delegator").extra_float_digits(None);
        Ok(DatabaseUrl { options, has_password })
    }

    pub fn has_password(&self) -> bool {
        self.has_password
    }

    /// Whether no connection leaves this machine.
    pub fn is_on_this_machine(&self) -> bool {
        is_on_this_machine(&self.options)
    }

    /// Whether a connection is always encrypted, and the certificate of the server verified.
    pub fn verifies_server(&self) -> bool {
        matches!(self.options.get_ssl_mode(), PgSslMode::VerifyFull)
    }
}

/// Host and database, without user and password.
impl fmt::Display for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        let database = options.get_database().unwrap_or_default();
        match options.get_socket() {
            Some(socket) => write!(formatter, "database {database} at {}", socket.display()),
            None => write!(formatter, "database {database} at {}:{}", options.get_host(), options.get_port()),
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DatabaseUrl({self})")
    }
}

fn is_on_this_machine(options: &PgConnectOptions) -> bool {
    options.get_socket().is_some() || is_loopback(options.get_host())
}

/// Parameters that a URL may have. sqlx ignores others, and logs their values, which may be a misspelled
/// password.
const PARAMETERS: [&str; 12] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

const SSL_MODES: [&str; 5] = ["disable", "prefer", "require", "verify-ca", "verify-full"];

fn check_parameters(parameters: &str) -> Result<(), UrlProblem> {
    for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        if !PARAMETERS.contains(&name) {
            return Err(UrlProblem::UnknownParameter { name: name.to_owned() });
        }
        if name == "sslmode" && !SSL_MODES.contains(&value) {
            return Err(UrlProblem::SslMode);
        }
    }
    Ok(())
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> DatabaseUrl {
        DatabaseUrl::parse(url).unwrap()
    }

    #[test]
    fn a_connection_to_another_machine_is_verified_unless_the_url_names_an_sslmode() {
        for (url, verifies) in [
            ("postgres://me@db.example.org/fleet", true),
            ("postgres://me@10.0.0.7/fleet", true),
            ("postgres://localhost.example.org/fleet", true),
            ("postgres://me@localhost/fleet", false),
            ("postgres://me@127.0.0.1:5433/fleet", false),
            ("postgres://me@[::1]/fleet", false),
            ("postgresql:///fleet?host=/run/postgresql", false),
            ("postgres://me@db.example.org/fleet?sslmode=require", false),
            ("postgres://me@localhost/fleet?sslmode=verify-full", true),
            ("postgres:///fleet?host=db.example.org", true),
        ] {
            assert_eq!(parse(url).verifies_server(), verifies, "{url}");
        }
    }

    #[test]
    fn a_password_is_recognised_and_never_shown() {
        for (url, has_password) in [
            ("postgres://me:hunter2@db/fleet", true),
            ("postgres://me@db/fleet?password=hunter2", true),
            ("postgres://me@db/fleet", false),
            ("postgres://db:5432/fleet", false),
        ] {
            let url = parse(url);
            assert_eq!(url.has_password(), has_password, "{url:?}");
            assert!(!format!("{url} {url:?}").contains("hunter2"));
        }
    }

    #[test]
    fn what_is_no_url_of_a_database_is_refused() {
        for (url, problem) in [
            ("mysql://db/fleet", UrlProblem::Scheme),
            ("db/fleet", UrlProblem::Scheme),
            ("postgres://db:port/fleet", UrlProblem::Invalid),
            ("postgres://db/fleet?sslmode=maybe", UrlProblem::SslMode),
            ("postgres://db/fleet?passwrd=x", UrlProblem::UnknownParameter { name: "passwrd".to_owned() }),
            ("postgres://db/", UrlProblem::NoDatabase),
        ] {
            assert_eq!(DatabaseUrl::parse(url).unwrap_err(), problem, "{url}");
        }
    }
}
