//! The event stream of the HTTP API: a snapshot and then every change, also after a break and for a slow reader.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::time::Instant;

use delegator_testkit::asking_agent;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::client::LONG_TIMEOUT;
use crate::http_client::HttpServer;

/// A reader of server-sent events, and the tasks as it knows them.
struct Stream {
    lines: BufReader<TcpStream>,
    tasks: BTreeMap<String, Value>,
    last_id: Option<String>,
}

struct Event {
    name: String,
    data: Value,
}

impl Stream {
    fn open(server: &HttpServer, query: &str, last_id: Option<&str>) -> Stream {
        let mut headers = server.default_headers();
        headers.extend(last_id.map(|id| ("Last-Event-ID".to_owned(), id.to_owned())));
        let connection = server.send("GET", &format!("/api/v1/stream{query}"), &headers, "");
        let mut lines = BufReader::new(connection);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(lines.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.contains(" 200 ") && head.contains("text/event-stream"), "{head}");
        Stream { lines, tasks: BTreeMap::new(), last_id: last_id.map(str::to_owned) }
    }

    /// Each part of the body is a chunk, so a line is never divided.
    fn next(&mut self) -> Event {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the stream ended");
            let line = line.trim_end();
            if let Some(id) = line.strip_prefix("id: ") {
                self.last_id = Some(id.to_owned());
            } else if let Some(event) = line.strip_prefix("event: ") {
                name = event.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ") {
                let event = Event { name, data: serde_json::from_str(data).unwrap() };
                self.apply(&event);
                return event;
            }
        }
    }

    fn apply(&mut self, event: &Event) {
        let id = |task: &Value| task["task_id"].as_str().unwrap().to_owned();
        match event.name.as_str() {
            "snapshot" => {
                let tasks = event.data["tasks"].as_array().unwrap();
                self.tasks = tasks.iter().map(|task| (id(task), task.clone())).collect();
            }
            "change" => {
                if let Some(task) = event.data.get("task") {
                    self.tasks.insert(id(task), task.clone());
                }
                if let Some(removed) = event.data.get("removed") {
                    self.tasks.remove(removed.as_str().unwrap());
                }
            }
            _ => {}
        }
    }

    fn until(&mut self, is_reached: impl Fn(&Stream) -> bool) {
        let begin = Instant::now();
        while !is_reached(self) {
            assert!(begin.elapsed() < LONG_TIMEOUT, "only pings: {:?}", self.tasks);
            self.next();
        }
    }

    fn state(&self, id: &str) -> Option<&str> {
        self.tasks.get(id)?["state"].as_str()
    }
}

#[test]
fn a_reader_continues_where_it_was_and_learns_of_a_gap() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let server = HttpServer::start(&stage);
    let first = stage.exec(&[]);
    let mut stream = Stream::open(&server, "", None);
    assert_eq!(stream.next().name, "snapshot");
    stream.until(|stream| stream.state(&first) == Some("completed"));
    let (last_id, known) = (stream.last_id.clone().unwrap(), stream.tasks.clone());
    // Another reader keeps the live view up to date meanwhile.
    let second = stage.exec(&[]);
    stream.until(|stream| stream.state(&second) == Some("completed"));
    let mut continued = Stream::open(&server, "", Some(&last_id));
    continued.tasks = known;
    let event = continued.next();
    assert_eq!(event.name, "change", "{}", event.data);
    continued.until(|continued| continued.state(&second) == Some("completed"));
    assert_eq!(continued.tasks.keys().collect::<Vec<_>>(), stream.tasks.keys().collect::<Vec<_>>());
    let mut stranger = Stream::open(&server, "", Some("1-7"));
    assert_eq!(stranger.next().name, "gap");
    assert_eq!(stranger.next().name, "snapshot");
    assert_eq!(stranger.state(&first), Some("completed"));
}

#[test]
fn a_question_and_its_answer_are_changes() {
    let stage = asking_agent::stage(PROGRAM, &asking_agent::permission_request());
    let server = HttpServer::start(&stage);
    let mut stream = Stream::open(&server, "", None);
    let id = asking_agent::exec(&stage);
    let section = |stream: &Stream| stream.tasks.get(&id).map(|task| task["section"].clone());
    stream.until(|stream| section(stream) == Some(json!("needs_you")));
    assert_eq!(stream.tasks[&id]["line"], "needs you: allow 'make all'?");
    stage.run_json(&["answer", &id, "allow_once"]);
    stream.until(|stream| section(stream) == Some(json!("finished_unread")));
    stage.run_json(&["read", &id]);
    stream.until(|stream| section(stream) == Some(json!("finished")));
}

#[test]
fn every_event_of_a_task_is_sent_once_and_in_order() {
    let messages: Vec<Value> =
        (0..1_200).map(|number| json!({"message": format!("text {number}")})).collect();
    let stage = Stage::with_script(PROGRAM, successful_turn(&messages));
    let server = HttpServer::start(&stage);
    let id = stage.exec(&[]);
    let mut stream = Stream::open(&server, &format!("?task={id}"), None);
    let mut numbers = Vec::new();
    let mut has_ended = false;
    while !has_ended {
        let event = stream.next();
        if event.name == "task_event" {
            assert_eq!(event.data["task_id"], id);
            numbers.push(event.data["number"].as_u64().unwrap());
            has_ended = event.data["event"]["type"] == "turn.completed";
        }
    }
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert!(numbers.len() > 1_200 && numbers == expected, "{numbers:?}");
    let mut late = Stream::open(&server, &format!("?task={id}&from=1000"), None);
    let first = std::iter::repeat_with(|| late.next()).find(|event| event.name == "task_event").unwrap();
    assert_eq!(first.data["number"], 1_000);
}
