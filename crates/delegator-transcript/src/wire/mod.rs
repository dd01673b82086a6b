//! The messages of agents that converse, one module per protocol: typed reading of one line, and writers of
//! the lines that we send.
//!
//! Reading is tolerant: unknown members, kinds and types never fail, and a value of an unexpected type counts
//! as absent. The modules know nothing about the order of messages: that is the business of the dialects
//! (`decode`, `map`) and of the supervisor's conversations.
//!
//! A stored stream contains both directions: a line of the agent as it came, a line that we sent as
//! `{"sent":<line>}`.

pub mod acp;
pub mod app_server;
pub mod claude;
pub mod idle;
pub mod json_rpc;

/// The key of the stored form of a line that we sent.
pub(crate) const SENT: &str = "sent";

/// The stored form of a line that we sent. `line` is JSON without a line end.
pub fn sent_line(line: &[u8]) -> Vec<u8> {
    [br#"{"sent":"#, line, b"}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sent_line_is_stored_unchanged() {
        let message = r#"{"id":1,"method":"m","params":{"text":"}"}}"#;
        let stored = String::from_utf8(sent_line(message.as_bytes())).expect("JSON");
        assert_eq!(stored, format!(r#"{{"{SENT}":{message}}}"#));
    }
}
