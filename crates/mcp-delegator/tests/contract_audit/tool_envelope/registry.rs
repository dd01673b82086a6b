//! Registry information: environments, the setup guide, and the cleanup.

use serde_json::{Value, json};

use crate::assertions::{absent, at, contains, equals, list, text};
use crate::recorded::{MANY_ENVIRONMENTS, REGISTRY};
use crate::row::{Section, differs, works};

pub(crate) const SECTIONS: &[Section] = &[
    Section {
        heading: "Category 5: Registry Info",
        rows: &[works(
            146,
            "Three tools: `_codex_cloud_list_environments`, `_codex_cloud_github_setup`, `_codex_cleanup_registry`",
            "`tool`, category and schema id of each",
            || {
                for (tool, answer) in [
                    ("_codex_cloud_list_environments", &REGISTRY.environments),
                    ("_codex_cloud_github_setup", &REGISTRY.github_setup),
                    ("_codex_cleanup_registry", &REGISTRY.cleanup),
                ] {
                    equals(answer, "/status", "ok");
                    equals(answer, "/tool", tool);
                    equals(answer, "/tool_category", "registry_info");
                    equals(answer, "/schema_id", "codex/v3.6/registry_info/v1");
                }
            },
        )],
    },
    Section {
        heading: "List Environments",
        rows: &[
            works(147, "`meta.count` is the number of environments", "2 of 2", || {
                equals(&REGISTRY.environments, "/meta/count", 2);
                assert_eq!(list(&REGISTRY.environments, "/data/environments").len(), 2);
            }),
            differs(
                148,
                "`meta.source` is the file, written with `~`",
                "Other programs do not expand `~`",
                "The absolute path of the file",
                || equals(&REGISTRY.environments, "/meta/source", REGISTRY.environments_path.as_str()),
            ),
            works(
                149,
                "An environment has `id`, `name`, `repository`, `tech_stack` and `created_at`",
                "Each of the five as in the file; `created_at` is absent if the file has none",
                || {
                    let environment = at(&REGISTRY.environments, "/data/environments/0");
                    equals(environment, "/id", "env_illustrations");
                    equals(environment, "/name", "Illustrations Training");
                    equals(environment, "/repository", "https://github.com/me/illustrations");
                    equals(environment, "/tech_stack", "python");
                    equals(environment, "/created_at", "2025-11-01T00:00:00Z");
                    absent(&REGISTRY.environments, "/data/environments/1/created_at");
                },
            ),
        ],
    },
    Section {
        heading: "GitHub Setup Guide",
        rows: &[
            works(150, "`meta` has `repository` and `tech_stack`", "Both as in the call", || {
                equals(&REGISTRY.github_setup, "/meta/repository", "https://github.com/user/repo");
                equals(&REGISTRY.github_setup, "/meta/tech_stack", "node");
            }),
            works(151, "`data.guide` is the guide as Markdown", "It begins with a heading", || {
                assert!(text(&REGISTRY.github_setup, "/data/guide").starts_with("# "));
            }),
            works(
                152,
                "`data.steps` has `step`, `title` and `instructions`",
                "Each step, counted from 1",
                || {
                    let steps = list(&REGISTRY.github_setup, "/data/steps");
                    assert!(steps.len() >= 2, "{steps:?}");
                    for (number, step) in (1..).zip(steps) {
                        equals(step, "/step", number);
                        text(step, "/title");
                        text(step, "/instructions");
                    }
                },
            ),
            works(
                153,
                "`data.verification_task` is a task that tests the access",
                "It mentions GitHub",
                || {
                    contains(&REGISTRY.github_setup, "/data/verification_task", "GitHub");
                },
            ),
        ],
    },
    Section {
        heading: "Cleanup Registry",
        rows: &[
            works(
                154,
                "`meta` has `dry_run`, `stuck_threshold_seconds` and `old_threshold_hours`",
                "The thresholds that were applied, 3600 and `retention_hours` by default",
                || {
                    equals(&REGISTRY.dry_run, "/meta/dry_run", true);
                    let expected = |hours: u32| json!({"dry_run": false, "stuck_threshold_seconds": 3600, "old_threshold_hours": hours});
                    equals(&REGISTRY.cleanup, "/meta", expected(24));
                    equals(&REGISTRY.second_cleanup, "/meta", expected(720));
                },
            ),
            works(
                155,
                "`stuck_tasks` has `found`, `cleaned` and `task_ids`",
                "The stuck task: found by a dry run, cleaned by a cleanup, then gone",
                || {
                    let stuck =
                        |cleaned: u32| json!({"found": 1, "cleaned": cleaned, "task_ids": [REGISTRY.stuck]});
                    equals(&REGISTRY.dry_run, "/data/stuck_tasks", stuck(0));
                    equals(&REGISTRY.cleanup, "/data/stuck_tasks", stuck(1));
                    equals(&REGISTRY.second_cleanup, "/data/stuck_tasks/found", 0);
                },
            ),
            works(
                156,
                "`old_tasks` has `found`, `deleted` and `oldest_age_hours`",
                "Three old tasks, the oldest of 48 hours; null when there is none",
                || {
                    let old = json!({"found": 3, "deleted": 3, "oldest_age_hours": 48});
                    equals(&REGISTRY.cleanup, "/data/old_tasks", old);
                    equals(&REGISTRY.second_cleanup, "/data/old_tasks/oldest_age_hours", Value::Null);
                },
            ),
            works(157, "`summary` says what was done", "Of a cleanup, and of a dry run", || {
                equals(&REGISTRY.cleanup, "/data/summary", "Cleaned 1 stuck task, deleted 3 old tasks");
                contains(&REGISTRY.dry_run, "/data/summary", "Would clean 1 stuck task");
            }),
        ],
    },
    Section {
        heading: "Conditional Output Reference",
        rows: &[differs(
            162,
            "Registry information is always complete",
            "Clients cut off MCP answers of more than about 50,000 characters",
            "All of two environments and all steps; all of 400 environments on the command line, over MCP the first ones, \
             with the warning W_TRUNCATION_001",
            || {
                let (all, first) = (&REGISTRY.many_environments_cli, &REGISTRY.many_environments);
                assert_eq!(list(all, "/data/environments").len(), MANY_ENVIRONMENTS);
                assert!((100..MANY_ENVIRONMENTS).contains(&list(first, "/data/environments").len()));
                assert!(first.to_string().chars().count() <= 48_000);
                equals(first, "/meta/warnings/0/code", "W_TRUNCATION_001");
                let environments = list(&REGISTRY.environments, "/data/environments");
                let ids: Vec<&str> =
                    environments.iter().map(|environment| text(environment, "/id")).collect();
                assert_eq!(ids, ["env_illustrations", "env_myproject"]);
                let guide = text(&REGISTRY.github_setup, "/data/guide");
                for step in list(&REGISTRY.github_setup, "/data/steps") {
                    assert!(guide.contains(text(step, "/title")), "{step} is not in the guide");
                }
            },
        )],
    },
];
