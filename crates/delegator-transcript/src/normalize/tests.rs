//! Tests of `strict` and of what normalising preserves.

use super::*;

fn strict(line: &str) -> String {
    normalize(line, NormalizeOptions { strict: true, ..NormalizeOptions::default() }).0
}

/// The documented example of Codex exec events.
const EXAMPLE: &str = r#"{"type":"thread.started","thread_id":"67e55044-10b1-426f-9247-bb680e5fe0c8"}
{"type":"turn.started"}
{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"echo hello","aggregated_output":"","status":"in_progress"}}
{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"echo hello","aggregated_output":"hello\n","exit_code":0,"status":"completed"}}
{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Done."}}
{"type":"turn.completed","usage":{"input_tokens":123,"cached_input_tokens":0,"output_tokens":45}}
"#;

#[test]
fn the_codex_exec_example_is_unchanged_strict_or_not() {
    for strict in [false, true] {
        let mut out = Vec::new();
        let mut normalizer =
            Normalizer::new(NormalizeOptions { strict, ..NormalizeOptions::default() }, LineLimits::STANDARD);
        normalizer.push(EXAMPLE.as_bytes(), &mut out);
        let summary = normalizer.finish(&mut out);
        assert_eq!(String::from_utf8(out).expect("UTF-8"), EXAMPLE);
        assert_eq!((summary.lines_written, summary.lost_lines()), (6, 0));
    }
}

#[test]
fn strict_drops_unnamed_fields_and_a_null_exit_code() {
    let line = r#"{"type":"item.started","extra":1,"item":{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","exit_code":null,"status":"in_progress","cwd":"/"}}"#;
    let expected = r#"{"type":"item.started","item":{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","status":"in_progress"}}"#;
    assert_eq!(strict(line), expected);
    let line = r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"cache_write_input_tokens":3,"output_tokens":4}}"#;
    let expected =
        r#"{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":2,"output_tokens":4}}"#;
    assert_eq!(strict(line), expected);
}

/// Normalises one line; returns it without the line end, and the reason why a line was left out.
fn normalize(line: &str, options: NormalizeOptions) -> (String, Option<UnmappedReason>) {
    let mut out = Vec::new();
    let mut normalizer = Normalizer::new(options, LineLimits::STANDARD);
    normalizer.push(format!("{line}\n").as_bytes(), &mut out);
    let summary = normalizer.finish(&mut out);
    let reason = summary.no_place.keys().copied().find(|reason| reason.is_lost());
    (String::from_utf8(out).expect("UTF-8").trim_end().to_owned(), reason)
}

#[test]
fn strict_leaves_out_what_is_not_documented_and_the_rest_marks_it() {
    let strict = NormalizeOptions { strict: true, ..NormalizeOptions::default() };
    let keep = NormalizeOptions { keep_unknown: true, ..strict };
    for (item, reason, name) in [
        (r#"{"id":"item_0","type":"hologram","x":{"y":[1]}}"#, UnmappedReason::UnknownItem, "unknown_item"),
        (
            r#"{"id":"item_0","type":"file_change","changes":[{"path":"a","kind":"add"}],"status":"in_progress"}"#,
            UnmappedReason::PatchInProgress,
            "patch_in_progress",
        ),
        (r#"{"type":"agent_message","text":"no id"}"#, UnmappedReason::InvalidField, "invalid_field"),
        (
            r#"{"id":"item_0","type":"mcp_tool_call","server":"s","tool":"t","status":"paused"}"#,
            UnmappedReason::InvalidField,
            "invalid_field",
        ),
    ] {
        let line = format!(r#"{{"type":"item.completed","item":{item}}}"#);
        let marked =
            format!(r#"{{"type":"item.completed","item":{item},"mcp_delegator_nonstandard":"{name}"}}"#);
        assert_eq!(normalize(&line, NormalizeOptions::default()), (marked.clone(), None));
        assert_eq!(normalize(&marked, NormalizeOptions::default()), (marked.clone(), None), "marked once");
        assert_eq!(normalize(&line, strict), (String::new(), Some(reason)));
        assert_eq!(normalize(&line, keep), (marked, Some(reason)));
    }
}

#[test]
fn strict_writes_a_declined_command_as_failed() {
    let line = |status: &str| {
        format!(
            r#"{{"type":"item.completed","item":{{"id":"item_0","type":"command_execution","command":"c","aggregated_output":"","status":"{status}"}}}}"#
        )
    };
    assert_eq!(strict(&line("declined")), line("failed"));
    let (marked, _) = normalize(&line("declined"), NormalizeOptions::default());
    assert!(marked.ends_with(r#""status":"declined"},"mcp_delegator_nonstandard":"declined"}"#), "{marked}");
}

#[test]
fn strict_writes_other_spellings_of_the_same_event() {
    for (line, expected) in [
        (r#"{"type":"turn.failed","error":"boom"}"#, r#"{"type":"turn.failed","error":{"message":"boom"}}"#),
        (
            r#"{"type":"turn.completed"}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":0,"cached_input_tokens":0,"output_tokens":0}}"#,
        ),
        (r#"{"type":"error","error":{"message":"boom"}}"#, r#"{"type":"error","message":"boom"}"#),
        (
            r#"{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"a\ud800b"}}"#,
            "{\"type\":\"item.completed\",\"item\":{\"id\":\"item_0\",\"type\":\"agent_message\",\"text\":\"a\u{fffd}b\"}}",
        ),
    ] {
        assert_eq!(strict(line), expected);
    }
}

#[test]
fn strict_invents_and_alters_no_value() {
    let command = r#""id":"item_0","type":"command_execution","status":"failed""#;
    let usage = |fields: &str| format!(r#"{{"type":"turn.completed","usage":{fields}}}"#);
    let item = |fields: &str| format!(r#"{{"type":"item.completed","item":{{{fields}}}}}"#);
    for line in [
        r#"{"type":"thread.started"}"#.to_owned(),
        r#"{"type":"thread.started","thread_id":7}"#.to_owned(),
        r#"{"type":"error"}"#.to_owned(),
        r#"{"type":"turn.failed"}"#.to_owned(),
        r#"{"type":"turn.failed","error":{"message":["boom"]}}"#.to_owned(),
        usage(r#""many""#),
        usage(r#"{"input_tokens":1,"output_tokens":2}"#),
        usage(r#"{"input_tokens":1,"cached_input_tokens":"2","output_tokens":3}"#),
        usage(r#"{"input_tokens":1,"cached_input_tokens":2,"output_tokens":3.5}"#),
        usage(r#"{"input_tokens":1e3,"cached_input_tokens":2,"output_tokens":3}"#),
        item(&format!(r#"{command},"command":["ls","-l"],"aggregated_output":"""#)),
        item(&format!(r#"{command},"command":"ls""#)),
        item(&format!(r#"{command},"command":"ls","aggregated_output":"","exit_code":1.5"#)),
        item(&format!(r#"{command},"command":"ls","aggregated_output":"","exit_code":9999999999"#)),
        item(r#""id":"item_0","type":"todo_list","items":[{"text":"a","completed":"yes"}]"#),
        item(
            r#""id":"item_0","type":"file_change","changes":[{"path":"a","kind":"move"}],"status":"failed""#,
        ),
        item(r#""id":"item_0","type":"agent_message""#),
    ] {
        let strict = NormalizeOptions { strict: true, ..NormalizeOptions::default() };
        assert_eq!(normalize(&line, strict), (String::new(), Some(UnmappedReason::InvalidField)), "{line}");
    }
}

#[test]
fn the_id_of_an_item_is_item_n_wherever_it_stands() {
    for options in
        [NormalizeOptions::default(), NormalizeOptions { strict: true, ..NormalizeOptions::default() }]
    {
        let line =
            r#"{"type":"item.completed","item":{"id":"ws_1","type":"web_search","id":"item_3","query":"q"}}"#;
        let expected = r#"{"type":"item.completed","item":{"id":"item_3","type":"web_search","query":"q"}}"#;
        assert_eq!(normalize(line, options), (expected.to_owned(), None));
    }
}

#[test]
fn strict_replaces_other_ids_by_free_ones_and_the_rest_marks_them() {
    let line = |phase: &str, id: &str| {
        format!(r#"{{"type":"item.{phase}","item":{{"id":"{id}","type":"web_search","query":"q"}}}}"#) + "\n"
    };
    let ids = ["item_0", "abc", "item_1", "d\\u0065f", "abc", "item_1"];
    let stream: String = ids.iter().map(|id| line("updated", id)).collect();
    let expected: String = ["item_0", "item_1", "item_2", "item_3", "item_1", "item_2"]
        .iter()
        .map(|id| line("updated", id))
        .collect();
    let strict = NormalizeOptions { strict: true, ..NormalizeOptions::default() };
    assert_eq!(normalize(&stream, strict), (expected.trim_end().to_owned(), None));
    let (marked, _) = normalize(&line("started", "abc"), NormalizeOptions::default());
    assert!(
        marked.contains(r#""id":"abc""#) && marked.ends_with(r#""mcp_delegator_nonstandard":"item_id"}"#)
    );
}

#[test]
fn white_space_around_a_line_is_not_part_of_it() {
    let mut out = Vec::new();
    let mut normalizer = Normalizer::new(NormalizeOptions::default(), LineLimits::STANDARD);
    normalizer.push(b"\xEF\xBB\xBF  {\"type\":\"turn.started\"}\t\r\n \n", &mut out);
    let summary = normalizer.finish(&mut out);
    assert_eq!(out, b"{\"type\":\"turn.started\"}\n");
    assert_eq!(summary.no_place.get(&UnmappedReason::Blank), Some(&1));
}
