//! TLS to a database that is not on this machine.

use delegator_fleet::FleetError;
use delegator_testkit::postgres::PostgresServer;

use crate::fleet::database;

/// An address of this machine that does not look like one.
const ELSEWHERE: &str = "0.0.0.0";

#[test]
fn a_server_elsewhere_must_prove_who_it_is() {
    let server = PostgresServer::options().fast().tls(&[ELSEWHERE]).start();
    let url = server.url_at(ELSEWHERE);
    let refused = database(&url).migrate().unwrap_err();
    assert!(matches!(refused, FleetError::NotAdmitted { .. }), "{refused:?}");
    let root = format!("{url}?sslrootcert={}", server.authority().display());
    assert_eq!(database(&root).migrate().unwrap().before, 0);
    // Encryption without a proof only if the URL says so.
    assert_ne!(database(&format!("{url}?sslmode=require")).migrate().unwrap().before, 0);
    let encrypted = "select bool_and(ssl) from pg_stat_ssl join pg_stat_activity using (pid)
        where application_name = 'mcp-delegator'";
    let client = database(&root);
    client.status().unwrap();
    assert_eq!(server.value(encrypted), "t");
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let server = PostgresServer::options().fast().tls(&["db.example.org"]).start();
    let root = server.authority();
    let url = format!("{}?sslrootcert={}", server.url_at(ELSEWHERE), root.display());
    let refused = database(&url).migrate().unwrap_err();
    assert!(matches!(refused, FleetError::NotAdmitted { .. }), "{refused:?}");
}

#[test]
fn a_server_elsewhere_without_tls_is_refused() {
    let server = PostgresServer::options().fast().start();
    let refused = database(&server.url_at(ELSEWHERE)).migrate().unwrap_err();
    assert!(matches!(refused, FleetError::NotAdmitted { .. }), "{refused:?}");
    assert_eq!(database(&server.url()).migrate().unwrap().before, 0);
    assert_ne!(database(&server.socket_url()).migrate().unwrap().before, 0);
}
