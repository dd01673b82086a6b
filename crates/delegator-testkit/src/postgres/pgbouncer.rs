//! The connection pooler pgbouncer in transaction mode: two transactions of one client may run on different connections
//! to the server.

use std::net::TcpStream;
use std::path::Path;
use std::process::Child;

use super::home::{ServerHome, give_to_account};
use super::{PostgresServer, free_port};
use crate::stage::wait_until;

/// A running pooler. It ends when it is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    home: ServerHome,
    process: Child,
    port: u16,
}

impl PgBouncer {
    /// A pooler with so many connections to the server. Everything else is as the package configures it.
    pub fn start(server: &PostgresServer, connections: u32) -> PgBouncer {
        PgBouncer::start_with(server, connections, "")
    }

    /// A pooler with more lines of configuration.
    pub fn start_with(server: &PostgresServer, connections: u32, settings: &str) -> PgBouncer {
        let program = Path::new("/usr/sbin/pgbouncer");
        assert!(program.exists(), "pgbouncer is missing: run scripts/install-postgresql");
        let home = ServerHome::new();
        let port = free_port(&home);
        let configuration = format!(
            "[databases]\n* = host={} port={} user=postgres\n[pgbouncer]\npool_mode = transaction\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             default_pool_size = {connections}\n{settings}",
            server.directory().display(),
            server.port(),
        );
        let file = home.path().join("pgbouncer.ini");
        std::fs::write(&file, configuration).unwrap();
        give_to_account(&file);
        let process = home.command(program).arg(file).spawn().unwrap();
        let mut pooler = PgBouncer { home, process, port };
        wait_until("the pooler is ready", || {
            let ended = pooler.process.try_wait().unwrap();
            assert!(ended.is_none(), "pgbouncer ended: {}", pooler.home.log());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        pooler
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}
