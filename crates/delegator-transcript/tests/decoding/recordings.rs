//! Recordings of the real Codex, 0.40 to 0.166: no line is lost or unknown, and Codex exec events pass unchanged.

use crate::recorded::{all, is_exec_stream, normalize, normalized, read, summarize, summarize_with};
use delegator_transcript::{
    Dialect, FoldOptions, MARK, NormalizeOptions, RolloutReader, StreamOutcome, TurnState, UnmappedReason,
    Usage,
};
use serde_json::Value;

#[test]
fn every_line_of_every_recording_is_understood() {
    let mut lines = 0;
    for (name, bytes) in all() {
        let counts = summarize(&bytes).counts;
        let expected = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count() as u64;
        assert_eq!(counts.lines, expected, "{name}: lines");
        assert_eq!((counts.unknown, counts.not_json, counts.mixed_dialect), (0, 0, 0), "{name}: {counts:?}");
        assert_eq!(counts.events, expected, "{name}: events");
        lines += expected;
    }
    assert!(lines > 1_200, "{lines}");
}

/// Removes the second `id` that Codex writes into a web-search item.
fn with_one_id(line: &str) -> String {
    let Some((before, rest)) = line.split_once(r#""type":"web_search","id":""#) else {
        return line.to_owned();
    };
    let (_, after) = rest.split_once("\",").expect("another field follows");
    format!(r#"{before}"type":"web_search",{after}"#)
}

/// The reason for which an event of the recordings is marked.
fn mark_of(line: &str) -> Option<&'static str> {
    let reasons = [(r#""type":"collab_tool_call""#, "unknown_item"), (r#""status":"declined""#, "declined")];
    let is_open_patch =
        line.contains(r#""type":"file_change""#) && line.contains(r#""status":"in_progress""#);
    let reason = reasons.iter().find(|(text, _)| line.contains(text)).map(|(_, reason)| *reason);
    reason.or(is_open_patch.then_some("patch_in_progress"))
}

/// How an event of the recordings is normalised: with one id, and marked if it is not documented.
fn expected_line(line: &str) -> String {
    let one_id = with_one_id(line);
    match mark_of(line) {
        None => one_id,
        Some(reason) => {
            format!(r#"{},"{MARK}":"{reason}"}}"#, one_id.strip_suffix('}').expect("an object"))
        }
    }
}

#[test]
fn normalize_only_drops_second_ids_and_marks_events_that_are_not_documented() {
    let (mut second_ids, mut marks) = (0, 0);
    for (name, bytes) in all() {
        if is_exec_stream(&name) {
            let (out, summary) = normalize(&bytes, NormalizeOptions::default());
            let given = String::from_utf8(bytes).expect("UTF-8");
            let expected: Vec<String> = given.lines().map(expected_line).collect();
            assert_eq!(out.lines().collect::<Vec<_>>(), expected, "{name}");
            assert_eq!(summary.lines_read, summary.lines_written, "{name}");
            second_ids += given.lines().filter(|line| with_one_id(line) != *line).count();
            marks += given.lines().filter(|line| mark_of(line).is_some()).count();
        }
    }
    assert!(second_ids > 20 && marks > 20, "{second_ids} {marks}");
}

#[test]
fn web_searches_keep_the_id_of_the_item() {
    let searches = |event: &Value| event["item"]["type"] == "web_search";
    let ids: Vec<String> = normalized(&String::from_utf8(read("web.jsonl")).expect("UTF-8"))
        .into_iter()
        .filter(searches)
        .filter_map(|event| event["item"]["id"].as_str().map(str::to_owned))
        .collect();
    assert!(!ids.is_empty() && ids.iter().all(|id| id.starts_with("item_")), "{ids:?}");
}

/// Accepts any JSON value except an object with a repeated key.
struct UniqueKeys;

impl<'de> serde::de::Visitor<'de> for UniqueKeys {
    type Value = ();

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(UniqueKeys)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = std::collections::BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(UniqueKeys)?;
            if !keys.insert(key.clone()) {
                return Err(serde::de::Error::custom(format!("the key {key} comes twice")));
            }
        }
        Ok(())
    }
}

impl<'de> serde::de::DeserializeSeed<'de> for UniqueKeys {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

#[test]
fn no_normalised_line_of_any_recording_has_a_key_twice() {
    use serde::de::DeserializeSeed;
    for (name, bytes) in all() {
        for (strict, keep_unknown) in [(false, false), (true, false), (false, true)] {
            let (out, _) = normalize(&bytes, NormalizeOptions { strict, keep_unknown, dialect: None });
            for line in out.lines() {
                let checked = UniqueKeys.deserialize(&mut serde_json::Deserializer::from_str(line));
                checked.unwrap_or_else(|error| panic!("{name}: {error}: {line}"));
            }
        }
    }
}

#[test]
fn strict_keeps_the_first_of_two_ids() {
    let strict = NormalizeOptions { strict: true, ..NormalizeOptions::default() };
    let (out, _) = normalize(&read("web.jsonl"), strict);
    let line = out.lines().nth(3).expect("a web search");
    let expected =
        r#"{"type":"item.completed","item":{"id":"item_0","type":"web_search","query":"rust mcp server"}}"#;
    assert_eq!(line, expected);
}

/// Finished items and turn ends, without the legitimate differences between a session file and a stream: a session file
/// has no retries, Codex orders the keys of an MCP result differently (values are compared, not bytes), and missing
/// fields are null in the stream and absent in ours.
fn comparable_events(stream: &[u8]) -> Vec<Value> {
    let text = String::from_utf8(stream.to_vec()).expect("UTF-8");
    let is_comparable =
        |event: &Value| !matches!(event["type"].as_str(), Some("error" | "item.started" | "item.updated"));
    let mut events: Vec<Value> = normalized(&text).into_iter().filter(is_comparable).collect();
    for item in events.iter_mut().filter_map(|event| event.get_mut("item")?.as_object_mut()) {
        item.remove("id");
        item.retain(|_, value| !value.is_null());
    }
    events
}

#[test]
fn a_session_file_gives_the_same_items_as_the_stream_of_its_run() {
    let runs = [
        "plain",
        "shell_ok",
        "shell_fail",
        "patch",
        "patch_multi",
        "plan",
        "mcp",
        "web",
        "err400",
        "spawn_agent",
        "drop_noterm",
        "code_shell",
        "resume_9_fork",
    ];
    for run in runs {
        let from_rollout = comparable_events(&read(&format!("rollouts/0.166.0.{run}.rollout.jsonl")));
        let streamed = comparable_events(&read(&format!("rollouts/0.166.0.{run}.exec.jsonl")));
        assert_eq!(from_rollout, streamed, "{run}");
    }
}

#[test]
fn older_session_files_report_commands_patches_and_plans_too() {
    let report = summarize(&read("rollouts/0.44.0.shell_fail.rollout.jsonl"));
    let command = &report.commands.list[0];
    assert_eq!((command.command.as_str(), command.exit_code), ("echo oops >&2; exit 3", Some(3)));
    assert_eq!(report.outcome, StreamOutcome::NotAnnounced);
    assert_eq!(report.usage.map(|usage| usage.own.input_tokens), Some(200));
    let report = summarize(&read("rollouts/0.44.0.patch.rollout.jsonl"));
    assert_eq!(report.files.added.len() + report.files.modified.len() + report.files.deleted.len(), 0);
    assert_eq!(report.counts.items.get("file_change"), Some(&3));
    let report = summarize(&read("rollouts/0.98.0.plan.rollout.jsonl"));
    assert_eq!((report.plan.len(), report.turns), (3, 1));
}

#[test]
fn the_head_of_a_session_file_is_read() {
    let head = RolloutReader::read(&read("rollouts/0.166.0.patch.rollout.jsonl")).expect("a session file");
    assert_eq!(head.cwd.as_deref(), Some("/home/dev/project"));
    assert_eq!((head.model.as_deref(), head.model_provider.as_deref()), (Some("gpt-5.5"), Some("fake")));
    assert_eq!((head.prompt.as_deref(), head.cli_version.as_deref()), (Some("edit"), Some("0.166.0")));
    assert!(head.started_at < head.last_at);
    let old = RolloutReader::read(&read("rollouts/0.44.0.plain.rollout.jsonl")).expect("a session file");
    assert_eq!((old.prompt.as_deref(), old.model.as_deref()), (Some("say hi"), Some("gpt-5.5")));
    let fork =
        RolloutReader::read(&read("rollouts/0.166.0.resume_9_fork.rollout.jsonl")).expect("a session file");
    assert!(fork.forked_from.is_some_and(|parent| parent != fork.thread_id));
    assert_eq!(RolloutReader::read(&read("plain.jsonl")), None);
}

#[test]
fn git_of_a_session_file_is_read() {
    let line = r#"{"timestamp":"t","type":"session_meta","payload":{"id":"x","git":{"commit_hash":"c","branch":"b","repository_url":"u"}}}"#;
    let head = RolloutReader::read(line.as_bytes()).expect("a session file");
    let git = [head.git_commit, head.git_branch, head.git_repository];
    assert_eq!(git, ["c", "b", "u"].map(|text| Some(text.to_owned())));
}

#[test]
fn streams_before_0_44_do_not_announce_an_end() {
    let report = summarize(&read("versions/0.40.0.plan.jsonl"));
    assert_eq!((report.dialect, report.outcome), (Some(Dialect::Protocol), StreamOutcome::NotAnnounced));
    assert_eq!(report.plan.iter().filter(|step| step.completed).count(), 3);
    assert_eq!(report.usage.map(|usage| usage.own.input_tokens), Some(400));
    assert_eq!(report.final_message.map(|message| message.text).as_deref(), Some("Plan finished."));
    let (_, summary) = normalize(&read("versions/0.40.0.plan.jsonl"), NormalizeOptions::default());
    assert_eq!(summary.no_place.get(&UnmappedReason::Context), Some(&2));
    assert_eq!(summary.no_place.get(&UnmappedReason::Held), Some(&4));
}

#[test]
fn the_verdict_of_every_recording_is_that_of_its_exit_code() {
    for (name, expected) in [
        ("plain", "completed"),
        ("err400", "failed"),
        ("incomplete", "failed"),
        ("err500_then_ok", "completed"),
        ("sigint_cmd", "interrupted"),
        ("sigint_plan", "interrupted"),
        ("sigkill_model", "interrupted"),
        ("conn_refused", "interrupted"),
        ("shell_orphan", "completed"),
        ("stdin_big", "interrupted"),
        ("bad_flag", "interrupted"),
        ("drop_noterm", "failed"),
        ("exec_review", "completed"),
    ] {
        let outcome = match summarize(&read(&format!("{name}.jsonl"))).outcome {
            StreamOutcome::Completed => "completed",
            StreamOutcome::Failed { message, .. } if !message.is_empty() => "failed",
            StreamOutcome::Failed { .. } => "failed without a reason",
            StreamOutcome::Interrupted => "interrupted",
            StreamOutcome::NotAnnounced => "not announced",
        };
        assert_eq!(outcome, expected, "{name}");
    }
}

#[test]
fn usage_of_a_resumed_thread_is_the_difference_to_what_it_had() {
    let before = summarize(&read("resume_1.jsonl")).usage.expect("usage").thread_total;
    let options = FoldOptions { usage_before: Some(before), ..FoldOptions::default() };
    let usage = summarize_with(&read("resume_2.jsonl"), options).usage.expect("usage");
    assert_eq!((usage.thread_total.input_tokens, usage.own.input_tokens), (300, 200));
    let review = summarize(&read("exec_review.jsonl")).usage.expect("usage");
    let zeros =
        Usage { cache_write_input_tokens: Some(0), reasoning_output_tokens: Some(0), ..Usage::default() };
    assert_eq!((review.own, review.cache_hit_rate), (zeros, None));
}

#[test]
fn items_repeated_after_a_reconnect_count_once() {
    let report = summarize(&read("drop_noterm.jsonl"));
    assert_eq!(report.repeated_items, 2);
    assert_eq!(report.counts.items.get("agent_message"), Some(&1));
    assert_eq!(report.turn, TurnState::Failed);
    assert_eq!(report.transient_error_count, 2, "the last error is the failure itself");
}
