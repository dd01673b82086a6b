//! The data directory that every test server starts with. `initdb` creates it once per target directory; a server
//! copies it, which is about twenty times as fast.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::home::ServerHome;

/// Path of a program of the newest installed PostgreSQL.
pub(super) fn program(name: &str) -> PathBuf {
    installation().join("bin").join(name)
}

fn installation() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let servers = versions.map(|entry| entry.path()).filter(|path| path.join("bin/postgres").exists());
    servers.max_by_key(|path| version(path)).expect("PostgreSQL is missing: run scripts/install-postgresql")
}

fn version(installation: &Path) -> u32 {
    installation.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or_default()
}

/// Fills the data directory of a server.
pub(super) fn copy_to(data: &Path) {
    run(Command::new("cp").arg("-a").arg("--reflink=auto").arg(template().join(".")).arg(data));
}

fn template() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(2).expect("a test program in deps/");
    let user = rustix::process::geteuid().as_raw();
    let template = target.join(format!("postgresql-{}-template-{user}", version(&installation())));
    let lock = File::create(template.with_extension("lock")).unwrap();
    lock.lock().unwrap();
    if !template.exists() {
        // The account of the server may have no access to the target directory.
        let home = ServerHome::new();
        let mut initdb = home.command(&program("initdb"));
        initdb.arg("-D").arg(home.data()).args(["-U", "postgres", "-A", "trust", "-E", "UTF8"]);
        initdb.args(["--no-locale", "--no-sync", "--wal-segsize=1"]);
        assert!(initdb.status().unwrap().success(), "initdb failed: {}", home.log());
        let part = template.with_extension("part");
        let _ = std::fs::remove_dir_all(&part);
        run(Command::new("cp").arg("-a").arg(home.data()).arg(&part));
        std::fs::rename(part, &template).unwrap();
    }
    template
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
