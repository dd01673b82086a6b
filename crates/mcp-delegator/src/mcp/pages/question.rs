//! An open question of an agent, with its options as buttons.

use maud::{Markup, html};

use crate::mcp::pages::view::View;
use crate::output::data::conversation::QuestionData;

pub(super) fn question(view: &View<'_>, task_id: &str, question: &QuestionData) -> Markup {
    let number = question.question_number;
    let (name, action) = (format!("q-{task_id}-{number}"), format!("/api/v1/tasks/{task_id}/answer"));
    html! {
        form class="question" data-key=(name) data-action=(action) aria-labelledby=(name) {
            input type="hidden" name="question" value=(number) data-kind="number";
            p id=(name) class="ask" { (view.text(&question.title)) }
            @if let Some(detail) = &question.detail { pre { (view.text(detail)) } }
            p class="note" {
                "Asked " (view.time(&question.asked_at)) ", without an answer it is refused " (view.time(&question.expires_at)) "."
            }
            @if view.may_answer() {
                div class="options" {
                    @for option in &question.options {
                        button name="option" value=(option.id) class=[(option.kind.starts_with("reject")).then_some("careful")] {
                            (view.text(&option.label))
                        }
                    }
                }
                @if question.is_text_accepted {
                    label { "Answer" textarea name="text" rows="2" data-draft=(name) required[question.options.is_empty()] {} }
                    button { "Send answer" }
                }
            }
        }
    }
}
