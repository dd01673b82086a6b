//! Over-long lines, normalised: both ends and the number of missing bytes.

use delegator_transcript::{LineLimits, NormalizeOptions, NormalizeSummary, Normalizer};
use serde_json::Value;

const SMALL: LineLimits = LineLimits { whole: 4096, head: 1024, tail: 256 };

fn normalize(line: &str) -> (String, NormalizeSummary) {
    let options = NormalizeOptions { keep_unknown: true, ..NormalizeOptions::default() };
    let mut normalizer = Normalizer::new(options, SMALL);
    let mut out = Vec::new();
    normalizer.push(format!("{line}\n").as_bytes(), &mut out);
    let summary = normalizer.finish(&mut out);
    let out = String::from_utf8(out).expect("UTF-8");
    assert_eq!(out.matches('\n').count(), summary.lines_written as usize, "{out}");
    (out, summary)
}

#[test]
fn an_over_long_message_of_any_dialect_has_a_mark_and_its_end() {
    let text = format!("the beginning {} é \\\"the end\\\"", "0123456789".repeat(1_000));
    for line in [
        format!(r#"{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{text}"}}}}"#),
        format!(r#"{{"type":"agent_message","content":"{text}"}}"#),
        format!(r#"{{"id":"0","msg":{{"type":"agent_message","message":"{text}"}}}}"#),
        format!(r#"{{"type":"event_msg","payload":{{"type":"agent_message","message":"{text}"}}}}"#),
    ] {
        let (out, summary) = normalize(&line);
        let event: Value = serde_json::from_str(out.lines().last().expect("a line")).expect("JSON");
        let shortened = event["item"]["text"].as_str().expect("text");
        assert!(
            shortened.starts_with("the beginning 0123") && shortened.ends_with("89 é \"the end\""),
            "{shortened}"
        );
        let (head, rest) = shortened.split_once("\n... ").expect("a mark");
        let (left_out, tail) = rest.split_once(" bytes omitted ...\n").expect("a mark");
        let escaped = head.len() + tail.len() + 2 + left_out.parse::<usize>().expect("a number");
        assert_eq!((escaped, summary.shortened > 0), (text.len(), true));
    }
}

#[test]
fn a_short_message_beside_something_long_is_not_marked() {
    let junk = "x".repeat(10_000);
    let line = format!(
        r#"{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"x","junk":"{junk}"}}}}"#
    );
    let event: Value = serde_json::from_str(&normalize(&line).0).expect("JSON");
    assert_eq!(event["item"]["text"], "x");
}

#[test]
fn an_over_long_unknown_line_is_passed_on_as_json_if_it_was_json() {
    let junk = "é\\n".repeat(3_000);
    for (kind, expected) in [("galaxy.formed", Value::from("galaxy.formed")), ("agent_message", Value::Null)]
    {
        let line = format!(r#"{{"type":"{kind}","role":"user","stars":"{junk}","last":"end"}}"#);
        let (out, summary) = normalize(&line);
        let passed_on: Value = serde_json::from_str(out.lines().last().unwrap_or_default()).expect("JSON");
        assert_eq!((&passed_on["type"], &passed_on["truncated"]), (&expected, &Value::Bool(true)));
        assert_eq!(passed_on["bytes"], line.len());
        assert_eq!(passed_on["omitted_bytes"], line.len() - 1024 - 256);
        let (head, tail) =
            (passed_on["head"].as_str().expect("text"), passed_on["tail"].as_str().expect("text"));
        assert!(line.starts_with(head) && line.ends_with(tail) && head.len() > 1000 && tail.len() > 250);
        assert_eq!((summary.lost_lines(), summary.shortened), (1, 1));
        assert_eq!(normalize(&out).0, out, "it is unknown again");
    }
}

#[test]
fn an_over_long_line_that_is_not_json_is_passed_on_with_a_mark() {
    let line = format!("panic: {} at the end", "stack ".repeat(2_000));
    let (out, _) = normalize(&line);
    let mark = format!("... {} bytes omitted ...", line.len() - 1024 - 256);
    let (head, tail) = out.trim_end().split_once(&mark).expect("a mark");
    assert!(line.starts_with(head) && line.ends_with(tail) && head.len() == 1024 && tail.len() == 256);
}
