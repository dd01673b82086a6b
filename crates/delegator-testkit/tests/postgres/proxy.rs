//! The proxy loses exactly the message that a test names.

use delegator_testkit::postgres::{Loss, PostgresServer, Proxy};

const INSERT: &str = "begin; insert into numbers values (1); commit;";

fn server_and_proxy() -> (PostgresServer, Proxy, String) {
    let server = PostgresServer::options().fast().start();
    server.execute("create table numbers (value integer)");
    let proxy = Proxy::start(server.port());
    let url = server.url_through(proxy.port());
    assert_eq!(PostgresServer::query_at(&url, INSERT), Ok(Vec::new()));
    assert_eq!(proxy.lost(), 0);
    (server, proxy, url)
}

#[test]
fn a_lost_reply_leaves_the_commit() {
    let (server, proxy, url) = server_and_proxy();
    proxy.lose(Loss::Reply, "commit");
    let error = PostgresServer::query_at(&url, INSERT).unwrap_err();
    assert!(error.contains("server closed the connection unexpectedly"), "{error}");
    assert_eq!((server.value("select count(*) from numbers").as_str(), proxy.lost()), ("2", 1));
    PostgresServer::query_at(&url, INSERT).unwrap();
    assert_eq!((server.value("select count(*) from numbers").as_str(), proxy.lost()), ("3", 1));
}

#[test]
fn a_lost_request_is_never_executed() {
    let (server, proxy, url) = server_and_proxy();
    proxy.lose(Loss::Request, "commit");
    PostgresServer::query_at(&url, INSERT).unwrap_err();
    assert_eq!((server.value("select count(*) from numbers").as_str(), proxy.lost()), ("1", 1));
}

#[test]
fn a_cut_refuses_until_it_is_repaired() {
    let (server, proxy, url) = server_and_proxy();
    proxy.cut();
    PostgresServer::query_at(&url, INSERT).unwrap_err();
    proxy.forward();
    PostgresServer::query_at(&url, INSERT).unwrap();
    assert_eq!(server.value("select count(*) from numbers"), "2");
}

#[test]
fn a_hang_delays_and_loses_nothing() {
    let (server, proxy, url) = server_and_proxy();
    proxy.hang();
    let client = std::thread::spawn(move || PostgresServer::query_at(&url, INSERT));
    assert_eq!(server.value("select count(*) from numbers"), "1");
    proxy.forward();
    assert_eq!(client.join().unwrap(), Ok(Vec::new()));
    assert_eq!(server.value("select count(*) from numbers"), "2");
}

#[test]
fn a_message_from_before_the_loss_was_armed_is_not_lost() {
    let (server, proxy, url) = server_and_proxy();
    let mut session = PostgresServer::session_at(&url);
    session.run(INSERT);
    proxy.lose(Loss::Reply, "commit");
    session.run("insert into numbers values (2);");
    assert_eq!((server.value("select count(*) from numbers").as_str(), proxy.lost()), ("3", 0));
}
