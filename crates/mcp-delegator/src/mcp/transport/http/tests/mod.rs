//! Tests of the HTTP transport.

mod hostile_clients;

use super::*;

#[test]
fn connections_use_at_most_half_of_the_open_files() {
    let connections = |files| Bounds::default().limited_by_open_files(files).connections;
    assert_eq!(connections(None), 512);
    assert_eq!(connections(Some(1 << 20)), 512);
    assert_eq!(connections(Some(1024)), 512);
    assert_eq!(connections(Some(256)), 128);
    assert_eq!(connections(Some(0)), 1);
}
