//! What is shown about a task beside its line: the question first, and how long it waits. Pure.

use delegator_domain::question::QuestionKind;
use delegator_registry::StoredQuestion;
use delegator_transcript::{PlanStep, Usage};

use crate::output::data::stored_task::seconds_since;
use crate::output::data::task_line::{TaskLine, short_age};
use crate::output::data::usage::dollars;
use crate::watch::board::Peek;
use crate::watch::lines::{Look, TextLine, clean_line};

/// The look of the words for the state of a task.
pub fn state_look(color_of: &str) -> Look {
    match color_of {
        "completed" => Look::Good,
        "failed" | "timeout" => Look::Bad,
        "warning" | "cancelled" => Look::Note,
        "working" => Look::Active,
        _ => Look::Plain,
    }
}

/// The question with the numbers of its options.
pub fn question(stored: &StoredQuestion, now_ms: i64) -> Vec<TextLine> {
    let question = &stored.question;
    let asks = match question.kind {
        QuestionKind::Permission => "The agent asks for permission",
        QuestionKind::Question => "The agent asks",
    };
    let waiting = short_age(seconds_since(stored.asked_at_ms, now_ms));
    let left = short_age(seconds_since(now_ms, stored.expires_at_ms));
    let mut lines = vec![TextLine::new(Look::Note, format!("{asks}, waiting {waiting}, {left} left"))];
    lines.extend(TextLine::all(Look::Heading, &question.title));
    lines.extend(question.detail.iter().flat_map(|detail| TextLine::all(Look::Plain, detail)));
    lines.extend((1..).zip(&question.options).map(|(number, option): (u32, _)| {
        TextLine::new(Look::Plain, format!("  {number}  {}", clean_line(&option.label)))
    }));
    lines
}

fn plan_step(step: &PlanStep) -> TextLine {
    let (sign, look) = if step.completed { ('x', Look::Dim) } else { (' ', Look::Plain) };
    TextLine::new(look, format!("[{sign}] {}", clean_line(&step.text)))
}

fn tokens(usage: Usage) -> String {
    let Usage { input_tokens, cached_input_tokens, output_tokens, .. } = usage;
    format!("{input_tokens} read ({cached_input_tokens} cached), {output_tokens} written")
}

/// Question or state, title and facts, the last message and the plan.
pub fn task(line: &TaskLine, peek: &Peek, age: &str, now_ms: i64) -> Vec<TextLine> {
    let mut lines: Vec<TextLine> = peek.questions.iter().flat_map(|open| question(open, now_ms)).collect();
    if lines.is_empty() {
        lines.push(TextLine::new(state_look(line.color_of), clean_line(&line.state)));
    } else {
        lines.push(TextLine::new(Look::Dim, "a answers"));
    }
    lines.push(TextLine::default());
    lines.extend(TextLine::all(Look::Heading, &line.title));
    let changed = line.lines.map(|lines| format!("+{} −{}", lines.added, lines.deleted));
    let labels = line.labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
    let facts = [
        ("task", Some(format!("{}, {}", line.id, line.agent))),
        ("age", Some(age.to_owned())),
        ("lines", changed),
        ("cost", line.cost_microdollars.map(|cost| format!("${:.2}", dollars(cost)))),
        ("tokens", peek.usage.map(tokens)),
        ("labels", Some(labels.join(", ")).filter(|labels| !labels.is_empty())),
        ("in", Some(line.working_dir.clone())),
    ];
    lines.extend(facts.iter().filter_map(|(name, value)| Some(fact(name, value.as_deref()?))));
    let message = peek.last_message.iter().flat_map(|message| TextLine::all(Look::Plain, message));
    for block in [message.collect::<Vec<_>>(), peek.plan.iter().map(plan_step).collect()] {
        lines.extend((!block.is_empty()).then(TextLine::default));
        lines.extend(block);
    }
    lines
}

pub fn fact(name: &str, value: &str) -> TextLine {
    TextLine::new(Look::Plain, format!("{name:<7}{}", clean_line(value)))
}
