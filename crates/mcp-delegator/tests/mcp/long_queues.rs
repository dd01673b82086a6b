//! `status` with more tasks than fit into one response: nothing is missing, the rest is counted and a cursor leads to it.

use std::collections::HashSet;

use delegator_domain::task::{TaskId, TaskLocation};
use delegator_registry::{NewTask, OpenOptions, Registry, StateDir};
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::client::{Client, V2026_07, quick_stage, text};

/// More than the server reads for one response.
const TASKS: u16 = 1_100;
const MAX_CHARACTERS: usize = 48_000;

/// A stage with a paused queue of `TASKS` tasks.
fn long_queue() -> Stage {
    let stage = quick_stage();
    stage.run_json(&["queue", "pause"]);
    let state_dir = StateDir::open(&stage.world.home().join("state"), &OpenOptions::default()).unwrap();
    let mut registry = Registry::open(&state_dir).unwrap();
    let project = stage.world.project().display().to_string();
    for number in 0..TASKS {
        let mut bits = [0; 16];
        // One letter of an id has five bits.
        for (letter, bits) in bits.iter_mut().enumerate().take(4) {
            *bits = u8::try_from((number >> (5 * letter)) & 31).unwrap();
        }
        let id = TaskId::from_random(TaskLocation::Local, bits);
        let task = NewTask::reading(id, project.clone(), "a task");
        registry.submit(&task, b"{}", jiff::Timestamp::now().as_millisecond()).unwrap();
    }
    stage
}

fn queued_ids(response: &Value) -> Vec<String> {
    let queue = response["data"]["queue"].as_array().cloned().unwrap_or_default();
    queue.iter().map(|task| task["task_id"].as_str().unwrap().to_owned()).collect()
}

/// Reads all pages; returns the ids in their order and the number of pages.
fn all_pages(mut page: impl FnMut(Option<&str>) -> (Value, Option<String>)) -> (Vec<String>, usize) {
    let (mut ids, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let (response, next) = page(cursor.as_deref());
        ids.extend(queued_ids(&response));
        pages += 1;
        let data = &response["data"];
        assert_eq!(data["summary"]["queued"], TASKS, "{}", data["summary"]);
        let not_listed = data["not_listed"]["queued_count"].as_u64().unwrap_or(0);
        assert_eq!(ids.len() as u64 + not_listed, u64::from(TASKS), "page {pages}");
        assert_eq!(next.is_some(), not_listed > 0, "page {pages}");
        match next {
            Some(next) => cursor = Some(next),
            None => return (ids, pages),
        }
    }
}

#[test]
fn status_lists_every_queued_task() {
    let stage = long_queue();
    // All of them fit into the limit of the command line.
    let all = stage.run_json(&["local", "status"]);
    let expected = queued_ids(&all);
    assert_eq!(expected.iter().collect::<HashSet<_>>().len(), usize::from(TASKS));
    assert_eq!((all["data"].get("not_listed"), all["meta"].get("cursor")), (None, None));
    let human = stage.world.run(["local", "status", "--format", "human"]).stdout;
    assert!(expected.iter().all(|id| human.contains(id)), "{human}");

    let (ids, pages) = all_pages(|cursor| {
        let mut args = vec!["local", "status", "--max-bytes", "100000"];
        args.extend(cursor.map(|cursor| ["--cursor", cursor]).into_iter().flatten());
        let response = stage.run_json(&args);
        let next = response["meta"]["cursor"].as_str().map(str::to_owned);
        (response, next)
    });
    assert!(pages > 1 && ids == expected, "{pages} pages");

    let mut client = Client::connect(&stage, V2026_07);
    let (ids, pages) = all_pages(|cursor| {
        let mut arguments = json!({});
        arguments.as_object_mut().unwrap().extend(cursor.map(|cursor| ("cursor".to_owned(), cursor.into())));
        let markdown = client.call("_codex_local_status", arguments.clone());
        assert!(text(&markdown).chars().count() <= MAX_CHARACTERS);
        let response = client.envelope("_codex_local_status", arguments);
        assert!(response.to_string().chars().count() <= MAX_CHARACTERS);
        let next = response["meta"]["next_cursor"].as_str().map(str::to_owned);
        // Markdown is shorter than JSON, so that more tasks fit.
        let is_partial = text(&markdown).contains("queued tasks are not listed");
        assert_eq!(text(&markdown).contains("- more: cursor "), is_partial, "{}", text(&markdown));
        assert!(is_partial || cursor.is_some());
        (response, next)
    });
    assert!(pages > 1 && ids == expected, "{pages} pages");
}
