//! Bulk output and timing.

use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agent::{Stage, json_lines, run_steps};

#[test]
fn a_big_line_has_the_requested_length() {
    for (shape, bytes) in
        [("plain", 1_u64), ("plain", 200_000), ("message", 10_000_000), ("command", 100_000)]
    {
        let output = run_steps(json!([{"big_line": {"bytes": bytes, "shape": shape}}, {"message": "next"}]));
        let mut lines = output.stdout.split(|byte| *byte == b'\n');
        let line = lines.next().unwrap();
        assert_eq!(line.len() as u64, bytes, "{shape}");
        assert!(lines.next().unwrap().ends_with(br#""text":"next"}}"#));
        if shape == "message" {
            let event: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(event["item"]["type"], "agent_message");
        }
        if shape == "command" {
            let event: Value = serde_json::from_slice(line).unwrap();
            assert_eq!(
                (&event["item"]["exit_code"], &event["item"]["status"]),
                (&json!(7), &json!("failed"))
            );
        }
    }
}

#[test]
fn a_gigabyte_in_one_line_takes_no_memory() {
    let stage = Stage::with(json!([{"big_line": {"bytes": 1_000_000_000}}, {"wait_for_file": "go"}]));
    let mut child = stage.start();
    let mut stdout = child.stdout.take().unwrap();
    let read =
        std::io::copy(&mut Read::by_ref(&mut stdout).take(1_000_000_001), &mut std::io::sink()).unwrap();
    assert_eq!(read, 1_000_000_001);
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 16 * 1024, "{peak}");
    std::fs::write(stage.path("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_flood_has_the_requested_length() {
    let output = run_steps(json!([{"flood": {"bytes": 1_000_003}}]));
    assert_eq!(output.stdout.len(), 1_000_003);
    let mut lines = output.stdout.split(|byte| *byte == b'\n');
    assert!(lines.by_ref().take(12_500).all(|line| line.len() == 79));
    let output = run_steps(json!([{"flood": {"bytes": 100_000, "stream": "stderr", "line_bytes": 0}}]));
    assert_eq!((output.stdout.len(), output.stderr.len()), (0, 100_000));
    assert!(output.stderr.iter().all(|byte| *byte == b'x'));
}

#[test]
fn an_endless_flood_does_not_end() {
    let stage = Stage::with(json!([{"flood": {}}]));
    let mut child = stage.start();
    let mut stdout = child.stdout.take().unwrap();
    let much = 300_000_000;
    assert_eq!(std::io::copy(&mut Read::by_ref(&mut stdout).take(much), &mut std::io::sink()).unwrap(), much);
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn events_are_numbered_and_of_one_size() {
    let output = run_steps(
        json!([{"message": "first"}, {"events": {"count": 5000, "bytes": 200}}, {"message": "last"}]),
    );
    let events = json_lines(&output);
    assert_eq!(events.len(), 5002);
    for (index, event) in events[1..5001].iter().enumerate() {
        assert_eq!(event["item"]["id"], format!("item_{}", index + 1));
        let number = format!("event {} ", index + 1);
        assert!(event["item"]["text"].as_str().unwrap().starts_with(&number), "{event}");
    }
    let sizes = output.stdout.split_inclusive(|byte| *byte == b'\n').skip(1).take(5000);
    assert!(sizes.into_iter().all(|line| line.len() == 200));
    assert_eq!(events[5001]["item"]["id"], "item_5001");
}

#[test]
fn a_timed_event_contains_its_time() {
    let output =
        run_steps(json!([{"events": {"count": 3, "bytes": 200, "timed": true, "per_second": 1000.0}}]));
    let moments: Vec<u64> = json_lines(&output)
        .iter()
        .map(|event| {
            let words: Vec<&str> = event["item"]["text"].as_str().unwrap().split(' ').collect();
            assert_eq!(words[2], "at", "{event}");
            words[3].parse().unwrap()
        })
        .collect();
    assert!(moments.is_sorted() && moments[0] > 0, "{moments:?}");
}

#[test]
fn a_million_events_arrive() {
    let output = run_steps(json!([{"events": {"count": 1_000_000}}]));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1_000_000);
}

#[test]
fn a_rate_is_not_exceeded() {
    let started_at = Instant::now();
    let output = run_steps(json!([{"events": {"count": 51, "per_second": 100.0}}]));
    assert_eq!(json_lines(&output).len(), 51);
    assert!(started_at.elapsed() >= Duration::from_millis(500));
    let started_at = Instant::now();
    let output = run_steps(json!([{"flood": {"bytes": 50_001, "bytes_per_second": 100_000}}]));
    assert_eq!(output.stdout.len(), 50_001);
    assert!(started_at.elapsed() >= Duration::from_millis(500));
}

#[test]
fn the_first_event_of_a_slow_stream_comes_at_once() {
    let stage = Stage::with(json!([{"events": {"per_second": 0.001}}]));
    let mut child = stage.start();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("event 1 "), "{line}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn delays_and_spinning_take_their_time() {
    let started_at = Instant::now();
    run_steps(json!([{"delay_ms": 100}, {"delay_between_ms": [50, 60]}, {"spin_ms": 100}]));
    assert!(started_at.elapsed() >= Duration::from_millis(250));
}
