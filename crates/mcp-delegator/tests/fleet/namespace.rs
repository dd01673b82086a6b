//! A network namespace: a worker in it reaches this machine through one link, which a test takes down. Packets are lost then,
//! and no connection is closed. Only root can create one.

#![expect(clippy::disallowed_methods, reason = "tests configure the network with ip")]

use std::net::Ipv4Addr;
use std::process::Command;

pub(crate) struct Namespace {
    name: String,
}

impl Namespace {
    /// `None` without the right to create one.
    pub(crate) fn new() -> Option<Namespace> {
        if !rustix::process::geteuid().is_root() {
            return None;
        }
        let namespace = Namespace { name: format!("mcpd{}", std::process::id()) };
        let (name, link, inner) = (&namespace.name, namespace.link(), namespace.inner_link());
        ip(&format!("netns add {name}"));
        ip(&format!("link add {link} type veth peer name {inner} netns {name}"));
        let [a, b, c, host] = namespace.address().octets();
        ip(&format!("addr add {a}.{b}.{c}.{host}/30 dev {link}"));
        ip(&format!("-n {name} addr add {a}.{b}.{c}.{}/30 dev {inner}", host + 1));
        ip(&format!("-n {name} link set {inner} up"));
        namespace.connect();
        Some(namespace)
    }

    /// The address of this machine as the namespace reaches it.
    pub(crate) fn address(&self) -> Ipv4Addr {
        let [.., third, fourth] = (std::process::id() * 4 + 1).to_be_bytes();
        Ipv4Addr::new(10, 213, third, fourth)
    }

    /// The argument of `nsenter`.
    pub(crate) fn argument(&self) -> String {
        format!("--net=/run/netns/{}", self.name)
    }

    pub(crate) fn disconnect(&self) {
        ip(&format!("link set {} down", self.link()));
    }

    pub(crate) fn connect(&self) {
        ip(&format!("link set {} up", self.link()));
    }

    fn link(&self) -> String {
        format!("{}h", self.name)
    }

    fn inner_link(&self) -> String {
        format!("{}n", self.name)
    }
}

/// The link goes with it.
impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "delete", &self.name]).status();
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("ip: {error} (Debian: apt-get install iproute2)"));
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
