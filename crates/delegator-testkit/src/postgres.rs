//! A private PostgreSQL for one test, from the server that `scripts/install-postgresql` installs. Without it a test
//! fails; it is not skipped.
//!
//! Each server has a temporary directory and listens on a socket in it and on a loopback port, without passwords. Tests
//! kill it, suspend it, fill its disk, and put a [`Proxy`] or a [`PgBouncer`] in front of it. It ends when it is dropped,
//! and also when the test process dies.

#![expect(clippy::disallowed_methods, reason = "tests start the servers that they use")]

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use crate::stage::wait_until;

mod disk;
mod home;
mod pgbouncer;
mod proxy;
mod psql;
mod template;
mod tls;

pub use pgbouncer::PgBouncer;
pub use proxy::{Loss, Proxy};
pub use psql::PsqlSession;

use home::ServerHome;

/// How a server is started.
#[derive(Debug, Clone)]
pub struct PostgresOptions {
    durable: bool,
    disk_bytes: Option<u64>,
    tls_names: Vec<String>,
}

impl PostgresOptions {
    /// Never waits for the disk. A commit still survives the kill of all processes, but not a crash of the machine.
    #[must_use]
    pub fn fast(self) -> PostgresOptions {
        PostgresOptions { durable: false, ..self }
    }

    /// Limits the disk, so that [`PostgresServer::fill_disk`] can fill it.
    #[must_use]
    pub fn disk(self, bytes: u64) -> PostgresOptions {
        PostgresOptions { disk_bytes: Some(bytes), ..self }
    }

    /// Offers TLS with a certificate for these host names and addresses.
    #[must_use]
    pub fn tls(self, names: &[&str]) -> PostgresOptions {
        PostgresOptions { tls_names: names.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    pub fn start(self) -> PostgresServer {
        let home = ServerHome::new();
        if let Some(bytes) = self.disk_bytes {
            disk::limit(&home, bytes);
        }
        template::copy_to(&home.data());
        if !self.tls_names.is_empty() {
            tls::configure(&home, &self.tls_names);
        }
        let port = free_port(&home);
        let process = Mutex::new(spawn(&home, port, &self));
        let server = PostgresServer { home, port, process, options: self };
        server.wait_until_ready();
        server
    }
}

/// A running server with one empty database, `postgres`.
#[derive(Debug)]
pub struct PostgresServer {
    home: ServerHome,
    port: u16,
    process: Mutex<Child>,
    options: PostgresOptions,
}

impl PostgresServer {
    pub fn start() -> PostgresServer {
        PostgresServer::options().start()
    }

    pub fn options() -> PostgresOptions {
        PostgresOptions { durable: true, disk_bytes: None, tls_names: Vec::new() }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of its database, for the superuser.
    pub fn url(&self) -> String {
        self.url_for("postgres")
    }

    pub fn url_for(&self, role: &str) -> String {
        format!("postgres://{role}@127.0.0.1:{}/postgres", self.port)
    }

    /// The URL through a proxy or a pooler.
    pub fn url_through(&self, port: u16) -> String {
        format!("postgres://postgres@127.0.0.1:{port}/postgres")
    }

    /// The URL through its socket.
    pub fn socket_url(&self) -> String {
        let directory = self.home.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{directory}:{}/postgres", self.port)
    }

    /// The URL by another name or address of this machine. Connections to 0.0.0.0 reach the server too, as if it were on
    /// another machine.
    pub fn url_at(&self, host: &str) -> String {
        format!("postgres://postgres@{host}:{}/postgres", self.port)
    }

    /// The certificate of the authority that signed the certificate of the server.
    pub fn authority(&self) -> PathBuf {
        tls::authority_file(&self.home)
    }

    /// Kills all processes of the server at once and waits for their end.
    pub fn kill_now(&self) {
        self.home.kill();
        let _ = self.process().wait();
    }

    /// Starts the server again at the same address. Shuts it down first if it runs.
    pub fn restart(&self) {
        self.shut_down();
        *self.process() = spawn(&self.home, self.port, &self.options);
        self.wait_until_ready();
    }

    /// Closes all connections and ends the server in order.
    pub fn shut_down(&self) {
        let mut process = self.process();
        if process.try_wait().unwrap().is_none() {
            self.home.signal(Signal::CONT);
            kill_process(Pid::from_child(&process), Signal::INT).unwrap();
            process.wait().unwrap();
        }
    }

    /// Suspends all processes: connections stay open, and nothing answers.
    pub fn suspend(&self) {
        wait_until("all processes of the server are suspended", || {
            self.home.signal(Signal::STOP);
            self.home.processes().into_iter().all(home::is_suspended)
        });
    }

    pub fn resume(&self) {
        self.home.signal(Signal::CONT);
    }

    /// Fills the limited disk: the server can write nothing more.
    pub fn fill_disk(&self) {
        disk::fill(&self.home);
    }

    pub fn free_disk(&self) {
        disk::free(&self.home);
    }

    /// Its processes, by id.
    pub fn processes(&self) -> Vec<i32> {
        self.home.processes().into_iter().map(Pid::as_raw_pid).collect()
    }

    /// The directory of its socket, its log and its data.
    pub fn directory(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// Everything that the server has logged.
    pub fn log(&self) -> String {
        self.home.log()
    }

    /// Runs statements as the superuser. They must succeed.
    pub fn execute(&self, sql: &str) {
        self.query(sql);
    }

    /// The rows of one query as the superuser, as text. Null is the empty text.
    pub fn query(&self, sql: &str) -> Vec<Vec<String>> {
        self.query_as("postgres", sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The only value of the only row of a query.
    pub fn value(&self, sql: &str) -> String {
        let rows = self.query(sql);
        assert!(rows.len() == 1 && rows[0].len() == 1, "{sql}: not one value: {rows:?}");
        rows[0][0].clone()
    }

    /// Runs statements with the rights of a role; the error is what `psql` prints.
    pub fn query_as(&self, role: &str, sql: &str) -> Result<Vec<Vec<String>>, String> {
        psql::run(&self.socket_url().replacen("postgres@", &format!("{role}@"), 1), sql)
    }

    /// A connection of the superuser that stays open.
    pub fn session(&self) -> PsqlSession {
        PostgresServer::session_at(&self.socket_url())
    }

    pub fn session_at(url: &str) -> PsqlSession {
        PsqlSession::open(url)
    }

    /// Runs statements at another URL, such as one through a proxy.
    pub fn query_at(url: &str, sql: &str) -> Result<Vec<Vec<String>>, String> {
        psql::run(url, sql)
    }

    fn process(&self) -> std::sync::MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `postmaster.pid` has the process id in its first line and the status in its eighth. A file of a server that was
    /// killed has another process id.
    fn wait_until_ready(&self) {
        let mut process = self.process();
        let id = process.id().to_string();
        wait_until("the server is ready", || {
            let ended = process.try_wait().unwrap();
            assert!(ended.is_none(), "PostgreSQL ended: {}", self.home.log());
            let status = std::fs::read_to_string(self.home.data().join("postmaster.pid")).unwrap_or_default();
            let lines: Vec<&str> = status.lines().map(str::trim).collect();
            lines.first() == Some(&id.as_str()) && lines.get(7) == Some(&"ready")
        });
    }
}

fn spawn(home: &ServerHome, port: u16, options: &PostgresOptions) -> Child {
    let mut command = home.command(&template::program("postgres"));
    command.arg("-D").arg(home.data()).arg("-k").arg(home.path()).arg("-p").arg(port.to_string());
    let mut settings = vec![
        "listen_addresses=127.0.0.1",
        "shared_buffers=16MB",
        // In the data directory, so that a killed server leaves nothing in /dev/shm.
        "dynamic_shared_memory_type=mmap",
        "max_connections=200",
    ];
    if !options.durable {
        settings.extend(["fsync=off", "full_page_writes=off"]);
    }
    if !options.tls_names.is_empty() {
        settings.extend(tls::SETTINGS);
    }
    for setting in settings {
        command.arg("-c").arg(setting);
    }
    command.spawn().unwrap()
}

/// A port below those that the kernel gives to outgoing connections, so that it is still free after a restart.
fn free_port(home: &ServerHome) -> u16 {
    let start = home
        .path()
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .fold(0_u16, |hash, byte| hash.wrapping_mul(31).wrapping_add(u16::from(*byte)));
    (0..12_000)
        .map(|step| 20_000 + (start % 12_000 + step) % 12_000)
        .find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok())
        .expect("a free port")
}
