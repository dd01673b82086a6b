//! The sessions of browsers, and the one-time codes that begin them.
//!
//! Each is a file in the state directory, named after the digest of its secret; the secret itself is stored nowhere.
//! So a code that one process created is valid at the server of another, a session outlives its server, and removing
//! the file revokes it everywhere.

use std::fmt::{self, Write};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::net::Ipv4Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use delegator_registry::make_private_path;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::commands::sign_in::Scope;

pub const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// Without a request of the session.
pub const IDLE_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// The time of the last request is recorded this exactly.
const USE_INTERVAL: Duration = Duration::from_secs(60);
/// Characters of a device name that are stored.
const MAX_DEVICE_CHARS: usize = 200;
const ADDRESS_FILE: &str = "address";
/// Of the digest of a secret. Enough to name a session, and not enough to be one.
const ID_CHARS: usize = 12;

/// A code or session whose holder knows it. Two random UUIDs have 244 bits.
#[derive(Clone)]
pub struct Secret(String);

/// Never shows the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

impl Secret {
    fn new() -> Secret {
        Secret(format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple()))
    }

    pub fn received(secret: &str) -> Secret {
        Secret(secret.to_owned())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Names a session in lists and in the audit file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionId(String);

impl SessionId {
    fn of(name: &str) -> SessionId {
        SessionId(name.chars().take(ID_CHARS).collect())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone)]
pub struct Session {
    pub id: SessionId,
    pub scope: Scope,
    pub device: String,
    pub created_ms: i64,
    pub last_used_ms: i64,
    /// The name of its file.
    file: String,
}

impl Session {
    pub fn expires_ms(&self) -> i64 {
        self.last_used_ms.saturating_add(IDLE_LIFETIME.as_millis() as i64)
    }
}

#[derive(Serialize, Deserialize)]
struct CodeFile {
    scope: String,
}

#[derive(Serialize, Deserialize)]
struct SessionFile {
    scope: String,
    device: String,
    created_ms: i64,
}

#[derive(Debug, Clone)]
pub struct Sessions {
    dir: PathBuf,
    codes: PathBuf,
    sessions: PathBuf,
}

impl Sessions {
    pub fn new(state_dir: &Path) -> Sessions {
        let dir = state_dir.join("dashboard");
        Sessions { codes: dir.join("codes"), sessions: dir.join("sessions"), dir }
    }

    /// The page with a link that a browser is started with.
    pub(super) fn opening_file(&self) -> PathBuf {
        self.dir.join("open.html")
    }

    /// A loopback address of which only browsers of this state directory know.
    pub fn own_address(&self) -> io::Result<Ipv4Addr> {
        let path = self.dir.join(ADDRESS_FILE);
        if let Some(known) = read(&path)? {
            return Ok(known);
        }
        let [a, b, c, ..] = *uuid::Uuid::new_v4().as_bytes();
        match write(&self.dir, ADDRESS_FILE, &Ipv4Addr::new(127, a.max(1), b, c.clamp(1, 254))) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            // Another process may have been faster.
            _ => read(&path)?.ok_or_else(|| io::Error::other(format!("{} is damaged", path.display()))),
        }
    }

    /// The next server gets another address: what another program stored in browsers under this one is left behind.
    pub fn forget_address(&self) -> io::Result<()> {
        remove(&self.dir.join(ADDRESS_FILE)).map(drop)
    }

    /// A code that begins one session within [`CODE_LIFETIME`].
    pub fn create_code(&self, scope: Scope) -> io::Result<Secret> {
        for path in files(&self.codes)? {
            if age(&path)? > CODE_LIFETIME {
                remove(&path)?;
            }
        }
        let code = Secret::new();
        write(&self.codes, &digest(code.expose()), &CodeFile { scope: scope.name().to_owned() })?;
        Ok(code)
    }

    /// Whether the code is valid now.
    pub fn has_code(&self, code: &str) -> io::Result<bool> {
        Ok(age(&self.codes.join(digest(code)))? <= CODE_LIFETIME)
    }

    /// The scope of the session that the code begins; `None` if it is unknown, expired or used. Of several callers with
    /// one code only one gets it.
    pub fn take_code(&self, code: &str) -> io::Result<Option<Scope>> {
        let path = self.codes.join(digest(code));
        let Some(file) = read::<CodeFile>(&path)? else { return Ok(None) };
        let is_expired = age(&path)? > CODE_LIFETIME;
        let is_ours = remove(&path)?;
        // It has led the browser here, if it had this code.
        remove(&self.opening_file())?;
        Ok(Scope::from_name(&file.scope).filter(|_| is_ours && !is_expired))
    }

    pub fn begin(&self, scope: Scope, device: &str) -> io::Result<(Secret, SessionId)> {
        let secret = Secret::new();
        let device = device.chars().filter(|letter| !letter.is_control()).take(MAX_DEVICE_CHARS).collect();
        let created_ms = jiff::Timestamp::now().as_millisecond();
        let file = SessionFile { scope: scope.name().to_owned(), device, created_ms };
        let name = digest(secret.expose());
        write(&self.sessions, &name, &file)?;
        Ok((secret, SessionId::of(&name)))
    }

    /// The session with this secret, which is in use now.
    pub fn find(&self, secret: &str) -> io::Result<Option<Session>> {
        let name = digest(secret);
        let Some(session) = self.read(&name)? else { return Ok(None) };
        let path = self.sessions.join(&name);
        if age(&path)? > USE_INTERVAL {
            match File::open(&path) {
                // It was revoked meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                file => file?.set_modified(jiff::Timestamp::now().into())?,
            }
        }
        Ok(Some(session))
    }

    /// The one that was used last comes first.
    pub fn list(&self) -> io::Result<Vec<Session>> {
        let mut sessions = Vec::new();
        for path in files(&self.sessions)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            sessions.extend(self.read(name)?);
        }
        sessions.sort_by_key(|session| std::cmp::Reverse(session.last_used_ms));
        Ok(sessions)
    }

    /// Whether it was neither revoked nor unused for too long.
    pub fn has(&self, session: &Session) -> bool {
        age(&self.sessions.join(&session.file)).is_ok_and(|age| age <= IDLE_LIFETIME)
    }

    /// False if it has ended already.
    pub fn revoke(&self, session: &Session) -> io::Result<bool> {
        remove(&self.sessions.join(&session.file))
    }

    fn read(&self, name: &str) -> io::Result<Option<Session>> {
        let path = self.sessions.join(name);
        let Some(file) = read::<SessionFile>(&path)? else { return Ok(None) };
        let used = match fs::metadata(&path).and_then(|found| found.modified()) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            used => used?,
        };
        if elapsed(used) > IDLE_LIFETIME {
            remove(&path)?;
            return Ok(None);
        }
        let last_used_ms = jiff::Timestamp::try_from(used).map_or(file.created_ms, |at| at.as_millisecond());
        let session = |scope| Session {
            id: SessionId::of(name),
            scope,
            device: file.device.clone(),
            created_ms: file.created_ms,
            last_used_ms,
            file: name.to_owned(),
        };
        Ok(Scope::from_name(&file.scope).map(session))
    }
}

/// The token that a write of the session must carry. It follows from the secret, and the secret not from it.
pub fn csrf_token(secret: &str) -> String {
    digest(&format!("csrf {secret}"))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn files(dir: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

fn write(dir: &Path, name: &str, content: &impl Serialize) -> io::Result<()> {
    make_private_path(dir)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(dir.join(name))?;
    serde_json::to_writer(&file, content)?;
    file.sync_all()
}

/// `None` if there is no such file. One that cannot be parsed is being written, or damaged; it signs no browser in.
fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        bytes => Ok(serde_json::from_slice(&bytes?).ok()),
    }
}

/// False if another process was faster.
fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        removed => removed.map(|()| true),
    }
}

/// Since the file was written or its session was used; the longest possible if it is gone.
fn age(path: &Path) -> io::Result<Duration> {
    match fs::metadata(path).and_then(|found| found.modified()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Duration::MAX),
        modified => Ok(elapsed(modified?)),
    }
}

/// Zero if the clock was set back.
fn elapsed(time: SystemTime) -> Duration {
    time.elapsed().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_age(path: &Path, age: Duration) {
        File::open(path).unwrap().set_modified(SystemTime::from(jiff::Timestamp::now()) - age).unwrap();
    }

    fn only_file(dir: &Path) -> PathBuf {
        let found = files(dir).unwrap();
        assert_eq!(found.len(), 1);
        found[0].clone()
    }

    #[test]
    fn a_code_begins_one_session() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::new(dir.path());
        let code = sessions.create_code(Scope::Answer).unwrap();
        assert_eq!(sessions.take_code("other").unwrap(), None);
        assert_eq!(sessions.take_code("../sessions/x").unwrap(), None);
        assert_eq!(sessions.take_code(code.expose()).unwrap(), Some(Scope::Answer));
        assert_eq!(sessions.take_code(code.expose()).unwrap(), None);
        let stored = only_file(&{
            sessions.create_code(Scope::Read).unwrap();
            sessions.codes.clone()
        });
        set_age(&stored, CODE_LIFETIME + Duration::from_secs(1));
        let expired = sessions.create_code(Scope::Read).unwrap();
        set_age(&only_file(&sessions.codes), CODE_LIFETIME + Duration::from_secs(1));
        assert_eq!(sessions.take_code(expired.expose()).unwrap(), None);
        assert!(files(&sessions.codes).unwrap().is_empty());
    }

    #[test]
    fn of_many_callers_with_one_code_one_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::new(dir.path());
        let code = sessions.create_code(Scope::Write).unwrap();
        let taken = std::thread::scope(|scope| {
            let take = || sessions.take_code(code.expose()).unwrap().is_some();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(take)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|taken| *taken).count()
        });
        assert_eq!(taken, 1);
    }

    #[test]
    fn the_address_is_a_loopback_address_until_it_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::new(dir.path());
        let first = sessions.own_address().unwrap();
        assert!(first.is_loopback() && first != Ipv4Addr::LOCALHOST, "{first}");
        assert_eq!(Sessions::new(dir.path()).own_address().unwrap(), first);
        sessions.forget_address().unwrap();
        sessions.forget_address().unwrap();
        assert!(sessions.own_address().unwrap().is_loopback());
    }

    #[test]
    fn a_session_lasts_while_it_is_used_and_until_it_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = Sessions::new(dir.path());
        let (secret, _) = sessions.begin(Scope::Read, "a browser\n\u{1b}[2J").unwrap();
        let session = sessions.find(secret.expose()).unwrap().unwrap();
        assert_eq!((session.scope, session.device.as_str()), (Scope::Read, "a browser[2J"));
        let path = only_file(&sessions.sessions);
        assert!(!fs::read_to_string(&path).unwrap().contains(secret.expose()));
        assert!(!path.to_string_lossy().contains(secret.expose()));
        set_age(&path, IDLE_LIFETIME - Duration::from_secs(60));
        assert!(sessions.find(secret.expose()).unwrap().is_some());
        assert!(age(&path).unwrap() < USE_INTERVAL, "its use is recorded");
        assert_eq!(sessions.list().unwrap().len(), 1);
        assert!(sessions.revoke(&session).unwrap() && !sessions.revoke(&session).unwrap());
        assert!(sessions.find(secret.expose()).unwrap().is_none());
        let (secret, _) = sessions.begin(Scope::Read, "").unwrap();
        set_age(&only_file(&sessions.sessions), IDLE_LIFETIME + Duration::from_secs(1));
        assert!(sessions.find(secret.expose()).unwrap().is_none());
        assert!(files(&sessions.sessions).unwrap().is_empty());
    }
}
