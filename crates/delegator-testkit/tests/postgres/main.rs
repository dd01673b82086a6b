//! The private PostgreSQL of the tests: it keeps what was committed, fails as it is made to fail, and never outlives
//! the test.

#![expect(clippy::disallowed_methods, reason = "a test starts itself as another process")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use delegator_testkit::postgres::{PgBouncer, PostgresServer};
use delegator_testkit::stage::wait_until;

mod proxy;

#[test]
fn servers_are_separate() {
    let (first, second) = (PostgresServer::start(), PostgresServer::start());
    first.execute("create table numbers (value integer); insert into numbers values (1), (null)");
    assert_eq!(first.query("select value, 'a b' from numbers order by 1"), [["1", "a b"], ["", "a b"]]);
    assert!(second.query("select 1 where false").is_empty());
    assert_eq!(second.value("select to_regclass('numbers') is null"), "t");
    for url in [first.url(), first.socket_url()] {
        let rows = PostgresServer::query_at(&url, "select count(*) from numbers").unwrap();
        assert_eq!(rows, [["2"]], "{url}");
    }
    let error = first.query_as("unknown", "select 1").unwrap_err();
    assert!(error.contains("role \"unknown\" does not exist"), "{error}");
}

#[test]
fn a_killed_server_keeps_what_was_committed() {
    let server = PostgresServer::start();
    server.execute("create table numbers (value integer)");
    for round in 0..3 {
        server.execute(&format!("insert into numbers values ({round})"));
        server.kill_now();
        assert!(server.processes().is_empty());
        let error = PostgresServer::query_at(&server.url(), "select 1").unwrap_err();
        assert!(error.contains("Connection refused"), "{error}");
        server.restart();
    }
    assert_eq!(server.query("select value from numbers order by 1"), [["0"], ["1"], ["2"]]);
    server.shut_down();
    assert!(server.processes().is_empty());
    server.restart();
    assert_eq!(server.value("select count(*) from numbers"), "3");
}

#[test]
fn a_suspended_server_goes_on_where_it_was() {
    let server = PostgresServer::options().fast().start();
    server.execute("create table numbers (value integer)");
    server.suspend();
    let url = server.url();
    let refused = PostgresServer::query_at(&format!("{url}?connect_timeout=2"), "select 1").unwrap_err();
    assert!(refused.contains("timeout expired"), "{refused}");
    let insert = std::thread::spawn(move || PostgresServer::query_at(&url, "insert into numbers values (1)"));
    server.resume();
    assert_eq!(insert.join().unwrap(), Ok(Vec::new()));
    assert_eq!(server.value("select count(*) from numbers"), "1");
}

#[test]
fn a_full_disk_refuses_writes_until_it_is_freed() {
    let server = PostgresServer::options().disk(100 << 20).start();
    server.execute("create table texts (value text)");
    server.execute("insert into texts values ('kept')");
    server.fill_disk();
    let large = "insert into texts select repeat('x', 1000) from generate_series(1, 5000)";
    let error = server.query_as("postgres", large).unwrap_err();
    let causes = ["No space left on device", "File too large", "server closed the connection"];
    assert!(causes.iter().any(|cause| error.contains(cause)), "{error}");
    server.free_disk();
    // A server that could not write its log has ended.
    server.restart();
    assert_eq!(server.query("select * from texts"), [["kept"]]);
    server.execute(large);
}

#[test]
fn tls_verifies_with_the_authority_of_the_server_only() {
    let server = PostgresServer::options().fast().tls(&["localhost"]).start();
    let url = |root: &str| format!("{}?sslmode=verify-full&sslrootcert={root}", server.url_at("localhost"));
    let authority = server.authority();
    let sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()";
    assert_eq!(
        PostgresServer::query_at(&url(authority.to_str().unwrap()), sql),
        Ok(vec![vec!["t".to_owned()]])
    );
    let other = PostgresServer::options().fast().tls(&["localhost"]).start();
    let error = PostgresServer::query_at(&url(other.authority().to_str().unwrap()), sql).unwrap_err();
    assert!(error.contains("SSL error"), "{error}");
}

#[test]
fn the_pooler_shares_one_connection_between_clients() {
    let server = PostgresServer::options().fast().start();
    let pooler = PgBouncer::start(&server, 1);
    let url = server.url_through(pooler.port());
    let mut idle = Command::new("psql");
    let mut idle = idle.args(["-At", &url]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = idle.stdin.take().unwrap();
    input.write_all(b"select pg_backend_pid();\n").unwrap();
    let mut first = String::new();
    BufReader::new(idle.stdout.take().unwrap()).read_line(&mut first).unwrap();
    // In session mode this would wait until the first client disconnects.
    let second = PostgresServer::query_at(&url, "select pg_backend_pid()").unwrap();
    assert_eq!(second, [[first.trim()]]);
    drop(input);
    idle.wait().unwrap();
}

#[test]
fn a_panic_leaves_no_server_behind() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let test = std::thread::spawn(move || {
        let server = PostgresServer::options().fast().start();
        let pooler = PgBouncer::start(&server, 1);
        server.suspend();
        sender.send((server.directory(), server.processes())).unwrap();
        panic!("the expected panic of a test with {}", pooler.port());
    });
    assert!(test.join().is_err());
    let (directory, processes) = receiver.recv().unwrap();
    assert!(!directory.exists());
    assert!(!processes.is_empty() && !processes.into_iter().any(delegator_testkit::stage::is_alive));
}

#[test]
fn a_killed_test_leaves_no_server_behind() {
    if std::env::var_os(ENDLESS).is_some() {
        run_a_server_without_end();
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "--nocapture", "a_killed_test_leaves_no_server_behind"]).env(ENDLESS, "1");
    let mut test = test.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(test.stderr.take().unwrap()).lines().map_while(Result::ok);
    let mut value = |name: &str| output.find_map(|line| Some(line.split_once(name)?.1.to_owned())).unwrap();
    let directory = value("directory: ");
    let processes: Vec<i32> =
        value("processes: ").split(' ').map(|process| process.parse().unwrap()).collect();
    assert!(processes.len() > 1);
    test.kill().unwrap();
    test.wait().unwrap();
    wait_until("the directory is removed", || !std::path::Path::new(&directory).exists());
    assert!(!processes.into_iter().any(delegator_testkit::stage::is_alive));
}

/// Set in the environment of the process that is killed.
const ENDLESS: &str = "TEST_POSTGRES_ENDLESS";

fn run_a_server_without_end() -> ! {
    let server = PostgresServer::options().disk(100 << 20).start();
    let processes: Vec<String> = server.processes().iter().map(ToString::to_string).collect();
    let line = format!("directory: {}\nprocesses: {}\n", server.directory().display(), processes.join(" "));
    std::io::stderr().write_all(line.as_bytes()).unwrap_or_default();
    loop {
        std::thread::park();
    }
}
