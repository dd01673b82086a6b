//! Invalid input of every kind: it is counted and reported, never causes a panic, and never hides the lines after it.

use crate::recorded::{all, normalize, summarize};
use delegator_transcript::{
    Dialect, Effect, Event, FoldOptions, ItemStatus, LineLimits, NormalizeOptions, Normalizer, Report,
    StreamOutcome, Summarizer, ThreadEvent, decode_text,
};
use proptest::prelude::*;

const GOOD: &str =
    r#"{"type":"item.completed","item":{"id":"item_7","type":"agent_message","text":"still here"}}"#;

/// The report of `bad` followed by a valid line, which must be recognised.
fn with_good_line_after(bad: &[u8]) -> Report {
    let mut bytes = bad.to_vec();
    bytes.push(b'\n');
    bytes.extend_from_slice(GOOD.as_bytes());
    let report = summarize(&bytes);
    assert_eq!(report.final_message.as_ref().map(|message| message.text.as_str()), Some("still here"));
    report
}

#[test]
fn an_empty_stream_is_interrupted() {
    let report = summarize(b"");
    assert_eq!(report, Report::default());
    assert_eq!((report.counts.lines, report.outcome, report.dialect), (0, StreamOutcome::Interrupted, None));
    assert_eq!((report.progress, report.current_activity), (None, None));
}

#[test]
fn binary_is_counted_as_not_json() {
    let bytes: Vec<u8> = (0..=255u8).cycle().take(10_000).collect();
    assert!(with_good_line_after(&bytes).counts.not_json > 30);
}

#[test]
fn depth_of_100_000_does_not_overflow_the_stack() {
    let deep = "[".repeat(100_000);
    assert_eq!(with_good_line_after(deep.as_bytes()).counts.not_json, 1);
    let closed = format!("{deep}{}", "]".repeat(100_000));
    assert_eq!(with_good_line_after(closed.as_bytes()).counts.unknown, 1);
    let inside = format!(
        r#"{{"type":"item.completed","item":{{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"t","arguments":{closed},"status":"completed"}}}}"#
    );
    assert_eq!(with_good_line_after(inside.as_bytes()).mcp_calls.finished, 1);
    let objects = format!(r#"{}1{}"#, r#"{"type":"#.repeat(100_000), "}".repeat(100_000));
    assert_eq!(with_good_line_after(objects.as_bytes()).counts.unknown, 1);
}

#[test]
fn numbers_beyond_64_bits_are_tolerated() {
    let usage = r#"{"type":"turn.completed","usage":{"input_tokens":99999999999999999999999999,"cached_input_tokens":1e999,"output_tokens":-1e999}}"#;
    let report = with_good_line_after(usage.as_bytes());
    let total = report.usage.expect("usage").thread_total;
    assert_eq!((total.input_tokens, total.output_tokens), (i64::MAX, i64::MIN));
    let code = r#"{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"c","aggregated_output":"","exit_code":99999999999,"status":"failed"}}"#;
    assert_eq!(with_good_line_after(code.as_bytes()).commands.list[0].exit_code, None);
}

#[test]
fn of_duplicate_keys_the_first_counts() {
    let line = r#"{"type":"turn.started","type":"turn.failed","item":1,"item":{}}"#;
    assert!(matches!(decode_text(line), Event::Thread(ThreadEvent::TurnStarted)));
    let search =
        r#"{"type":"item.started","item":{"id":"item_0","type":"web_search","id":"ws_1","query":""}}"#;
    let Event::Thread(ThreadEvent::Item { item, .. }) = decode_text(search) else { panic!("an item") };
    assert!(item.id == *"item_0");
    let usage = r#"{"type":"turn.completed","usage":{"input_tokens":1,"input_tokens":2,"cached_input_tokens":3,"cached_input_tokens":4,"output_tokens":5,"output_tokens":6}}"#;
    let Event::Thread(ThreadEvent::TurnCompleted { usage: Some(usage) }) = decode_text(usage) else {
        panic!("usage")
    };
    assert_eq!((usage.input_tokens, usage.cached_input_tokens, usage.output_tokens), (1, 3, 5));
}

#[test]
fn null_is_the_same_as_absent() {
    let line = r#"{"type":"item.completed","item":{"id":null,"type":"command_execution","command":null,"aggregated_output":null,"exit_code":null,"status":null}}"#;
    let report = with_good_line_after(line.as_bytes());
    assert_eq!((report.commands.finished, report.commands.failed), (1, 0));
    let failed = with_good_line_after(br#"{"type":"turn.failed","error":null}"#);
    assert_eq!(failed.outcome, StreamOutcome::Failed { message: String::new(), code: None });
    with_good_line_after(br#"{"type":"turn.completed","usage":null}"#);
    with_good_line_after(br#"{"type":"thread.started","thread_id":null}"#);
}

#[test]
fn fields_of_another_type_are_the_same_as_absent() {
    for line in [
        r#"{"type":"item.completed","item":{"id":5,"type":"agent_message","text":{"a":1}}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"file_change","changes":{"a":1},"status":7}}"#,
        r#"{"type":"item.completed","item":{"id":"i","type":"todo_list","items":[1,null,{"text":1},{"text":"x"}]}}"#,
        r#"{"type":"turn.completed","usage":[1]}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":"7"}}"#,
        r#"{"type":"thread.started","thread_id":12}"#,
    ] {
        assert_eq!(with_good_line_after(line.as_bytes()).counts.events, 2, "{line}");
    }
    assert_eq!(with_good_line_after(br#"{"type":"item.completed","item":[1]}"#).counts.unknown, 1);
}

#[test]
fn unknown_types_are_counted_and_unknown_items_are_items() {
    let report = with_good_line_after(br#"{"type":"galaxy.formed","stars":9}"#);
    assert_eq!((report.counts.unknown, report.counts.by_type.get("galaxy.formed")), (1, Some(&1)));
    let line = br#"{"type":"item.completed","item":{"id":"i","type":"hologram","x":1}}"#;
    let report = with_good_line_after(line);
    assert_eq!((report.counts.unknown, report.counts.items.get("hologram")), (0, Some(&1)));
    let keep = NormalizeOptions { keep_unknown: true, ..NormalizeOptions::default() };
    let foreign = "{\"type\":\"galaxy.formed\"}\nnot json\n\n";
    let (out, summary) = normalize(foreign.as_bytes(), keep);
    assert_eq!((out.as_str(), summary.lost_lines()), ("{\"type\":\"galaxy.formed\"}\nnot json\n", 2));
    assert_eq!(normalize(foreign.as_bytes(), NormalizeOptions::default()).0, "");
}

#[test]
fn a_truncated_last_line_is_delivered_and_reported() {
    let report = summarize(
        br#"{"type":"turn.started"}
{"type":"item.completed","item":{"id":"item_0","type":"agent_mess"#,
    );
    assert_eq!((report.counts.lines, report.counts.not_json, report.counts.unterminated), (2, 1, true));
    let whole = summarize(br#"{"type":"turn.started"}"#);
    assert_eq!((whole.counts.events, whole.counts.unterminated), (1, true));
}

#[test]
fn two_dialects_in_one_stream_are_tolerated_and_counted() {
    let stream = "{\"type\":\"turn.started\"}\n{\"type\":\"item.completed\",\"item\":{\"id\":\"item_4\",\"type\":\"reasoning\",\"text\":\"t\"}}\n{\"id\":\"0\",\"msg\":{\"type\":\"agent_message\",\"message\":\"from the protocol\"}}\n{\"type\":\"idle\"}\n";
    let report = summarize(stream.as_bytes());
    assert_eq!((report.dialect, report.counts.mixed_dialect), (Some(Dialect::Thread), 2));
    assert_eq!(report.final_message.map(|message| message.text).as_deref(), Some("from the protocol"));
    let (out, _) = normalize(stream.as_bytes(), NormalizeOptions::default());
    assert!(out.contains(r#""id":"item_5""#), "ids made up do not collide with those of the stream: {out}");
}

#[test]
fn bad_utf8_becomes_replacement_characters_and_the_event_stays() {
    let mut line = br#"{"type":"item.completed","item":{"id":"i","type":"reasoning","text":"a"#.to_vec();
    line.extend_from_slice(b"\xFF\xC3");
    line.extend_from_slice(br#"b"}}"#);
    assert_eq!(with_good_line_after(&line).counts.events, 2);
    let (out, _) = normalize(&line, NormalizeOptions::default());
    assert!(out.contains("a\u{fffd}\u{fffd}b"));
}

const SMALL: LineLimits = LineLimits { whole: 4096, head: 1024, tail: 256 };

fn long_command() -> String {
    let output = r#"line \"quoted\" \u001b[0m\n"#.repeat(1_000) + "the very end";
    format!(
        r#"{{"type":"item.completed","item":{{"id":"item_3","type":"command_execution","command":"/bin/bash -lc 'make all'","aggregated_output":"{output}","exit_code":2,"status":"failed"}}}}"#
    )
}

#[test]
fn an_over_long_line_is_still_understood() {
    for line_end in ["\n", "\r\n"] {
        let stream = format!("{}{line_end}{GOOD}{line_end}", long_command());
        let mut summarizer = Summarizer::new(FoldOptions::default(), SMALL);
        stream.as_bytes().chunks(77).for_each(|piece| summarizer.push(piece));
        let report = summarizer.finish();
        assert_eq!((report.counts.over_long, report.counts.events), (1, 2));
        let command = &report.commands.list[0];
        assert_eq!(
            (command.command.as_str(), command.status, command.exit_code),
            ("make all", ItemStatus::Failed, Some(2))
        );
        assert!(command.output_head.starts_with("line \"quoted\" \u{1b}[0m\n"));
        assert!(command.output_tail.ends_with("\u{1b}[0m\nthe very end"), "{:?}", command.output_tail);
        assert!(command.output_bytes > 20_000);
        assert!(report.final_message.is_some());
    }
}

#[test]
fn an_over_long_line_is_normalised_to_a_shorter_one() {
    let mut normalizer = Normalizer::new(NormalizeOptions::default(), SMALL);
    let mut out = Vec::new();
    normalizer.push(format!("{}\n", long_command()).as_bytes(), &mut out);
    let summary = normalizer.finish(&mut out);
    assert_eq!((summary.shortened, summary.lines_written), (1, 1));
    let event: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(event["item"]["exit_code"], 2);
    let output = event["item"]["aggregated_output"].as_str().expect("text");
    assert!(output.contains("bytes omitted") && output.ends_with("the very end"));
}

#[test]
fn over_long_lines_of_every_other_kind_do_no_harm() {
    let filler = "x".repeat(10_000);
    for line in [
        format!(
            r#"{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{filler}"}}}}"#
        ),
        format!(r#"{{"type":"tool_result","output":"{filler}","call_id":"c"}}"#),
        format!(
            r#"{{"id":"0","msg":{{"type":"exec_command_end","stdout":"{filler}","call_id":"c","exit_code":0}}}}"#
        ),
        format!(
            r#"{{"timestamp":"t","type":"event_msg","payload":{{"type":"agent_message","message":"{filler}"}}}}"#
        ),
        format!(
            r#"{{"timestamp":"t","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"text":"{filler}"}}]}}}}"#
        ),
        format!(r#"{{"filler":"{filler}","type":"turn.started"}}"#),
        filler.clone(),
        format!("[{filler}]"),
        "{".repeat(10_000),
    ] {
        let mut summarizer = Summarizer::new(FoldOptions::default(), SMALL);
        summarizer.push(format!("{line}\n{GOOD}\n").as_bytes());
        let report = summarizer.finish();
        assert_eq!((report.counts.lines, report.counts.over_long), (2, 1));
        assert_eq!(report.final_message.map(|message| message.text).as_deref(), Some("still here"));
    }
}

/// Found by fuzzing: a raw NUL in the string that the head of an over-long line ends in.
#[test]
fn control_characters_at_the_cut_of_an_over_long_line_never_reach_the_output() {
    let line = "{\"type\":\"item.completed\",\"item\":{\"id\":\"i\0\0\0\0\0\0\0\0type\":\"agent_message\",\"text\":\"Added, updated, deleted.\"}}\n";
    let mut normalizer =
        Normalizer::new(NormalizeOptions::default(), LineLimits { whole: 96, head: 48, tail: 24 });
    let mut out = Vec::new();
    normalizer.push(line.as_bytes(), &mut out);
    assert_eq!(normalizer.finish(&mut out).lost_lines(), 1);
    assert_eq!(out, b"");
}

#[test]
fn lists_are_bounded_and_counts_are_exact() {
    let mut summarizer = Summarizer::new(FoldOptions::default(), LineLimits::STANDARD);
    for n in 0..20_000 {
        let line = format!(
            "{{\"type\":\"item.completed\",\"item\":{{\"id\":\"item_{n}\",\"type\":\"command_execution\",\"command\":\"c{n}\",\"aggregated_output\":\"x\",\"exit_code\":{},\"status\":\"completed\"}}}}\n{{\"type\":\"error\",\"message\":\"e{n}\"}}\n{{\"type\":\"t{n}\"}}\n",
            n % 2
        );
        summarizer.push(line.as_bytes());
    }
    let report = summarizer.finish();
    assert_eq!((report.commands.finished, report.commands.failed), (20_000, 10_000));
    assert_eq!(report.commands.list.len(), 200);
    assert_eq!(report.commands.list[199].command, "c19999");
    assert_eq!((report.transient_error_count, report.recent_lines.len()), (20_000, 50));
    assert_eq!(report.counts.unknown, 20_000);
    assert!(report.counts.by_type.len() < 100 && report.transient_errors.len() < 100);
}

/// All effects of a stream as text.
fn describe(bytes: &[u8], cuts: &[usize]) -> String {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    let mut framer = delegator_transcript::Framer::new(LineLimits { whole: 300, head: 100, tail: 50 });
    let mut translator = delegator_transcript::Translator::default();
    let mut description = String::new();
    let mut line = |line: delegator_transcript::Line<'_>| {
        let text = line.text();
        let event = delegator_transcript::decode(&text);
        description.push_str(&format!("{} {} {event:?}\n", line.number, line.length));
        translator
            .translate(event, &mut |effect: Effect<'_>| description.push_str(&format!("  {effect:?}\n")));
    };
    for pair in cuts.windows(2) {
        framer.push(&bytes[pair[0]..pair[1]], &mut line);
    }
    framer.finish(&mut line);
    description
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_split_of_any_stream_gives_the_same_events(
        picks in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..6),
        noise in proptest::collection::vec(any::<u8>(), 0..40),
        cuts in proptest::collection::vec(any::<usize>(), 0..12),
    ) {
        let recordings = all();
        let mut bytes = Vec::new();
        for (recording, line) in picks {
            let (_, recording) = recording.get(&recordings);
            let lines: Vec<&[u8]> = recording.split(|byte| *byte == b'\n').collect();
            let line = line.get(&lines);
            bytes.extend_from_slice(&line[..line.len().min(5_000)]);
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(&noise);
        prop_assert_eq!(describe(&bytes, &[]), describe(&bytes, &cuts));
    }
}

#[test]
fn envelopes_of_other_programs_are_not_taken_for_codex() {
    for line in [
        r#"{"level":"info","msg":{"text":"x"}}"#,
        r#"{"type":"status","payload":{"type":"x"}}"#,
        r#"{"id":"0","msg":{"type":"from_the_future"}}"#,
    ] {
        let report = with_good_line_after(line.as_bytes());
        assert_eq!((report.counts.unknown, report.dialect), (1, Some(Dialect::Thread)), "{line}");
    }
    let future = r#"{"timestamp":"t","type":"event_msg","payload":{"type":"from_the_future"}}"#;
    assert_eq!(summarize(future.as_bytes()).counts.unknown, 1);
}

#[test]
fn a_message_of_an_over_long_line_is_marked_truncated() {
    let text = "0123456789".repeat(1_000);
    let line =
        format!(r#"{{"type":"item.completed","item":{{"id":"i","type":"agent_message","text":"{text}"}}}}"#);
    let mut summarizer = Summarizer::new(FoldOptions::default(), SMALL);
    summarizer.push(line.as_bytes());
    let message = summarizer.finish().final_message.expect("a message");
    assert_eq!((message.bytes, message.truncated), (10_000, true));
    assert!(text.starts_with(&message.text) && message.text.len() > 900);
}

#[test]
fn an_error_without_an_end_of_its_turn_is_bounded() {
    let message = "m".repeat(1 << 20);
    let line = format!(r#"{{"id":"1","msg":{{"type":"error","message":"{message}"}}}}"#);
    match summarize(line.as_bytes()).outcome {
        StreamOutcome::Failed { message, .. } => assert_eq!(message.len(), 64 << 10),
        outcome => panic!("{outcome:?}"),
    }
}

#[test]
fn a_stray_done_among_codex_exec_events_decides_nothing() {
    let failed = "{\"type\":\"turn.started\"}\n{\"type\":\"turn.failed\",\"error\":{\"message\":\"m\"}}\n{\"type\":\"done\"}\n";
    assert_eq!(
        summarize(failed.as_bytes()).outcome,
        StreamOutcome::Failed { message: "m".into(), code: None }
    );
}
