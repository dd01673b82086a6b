//! Renders a document as HTML, for parts of a page that have no template of their own.

use delegator_domain::terminal;
use maud::{Markup, html};

use crate::output::call_syntax::CallSyntax;
use crate::output::documents::document::{Block, Document};

impl Document {
    /// Without its title. Data is escaped, so that it cannot add markup.
    pub fn to_html(&self) -> Markup {
        html! { @for block in &self.blocks { (markup(block)) } }
    }
}

fn markup(block: &Block) -> Markup {
    let clean = terminal::sanitize;
    let sentence = |suggestion| CallSyntax::Commands.sentence(suggestion);
    match block {
        Block::Text(text) => html! { p { (clean(text)) } },
        Block::Facts(facts) => html! {
            dl { @for (name, value) in facts { div { dt { (clean(name)) } dd { (clean(value)) } } } }
        },
        Block::Table { columns, rows } => html! {
            div class="wide" { table {
                thead { tr { @for column in columns { th scope="col" { (column) } } } }
                tbody { @for row in rows { tr { @for cell in row { td { (clean(cell)) } } } } }
            } }
        },
        Block::Verbatim(text) | Block::FinalMessage(text) => html! { pre { (clean(text)) } },
        Block::Next(call) => html! {
            @if let Some(command) = CallSyntax::Commands.render(call) { p class="note" { "Next: " code { (clean(&command)) } } }
        },
        Block::Advice(suggestion) | Block::ForPeople(suggestion) => html! {
            p class="note" { (clean(&sentence(suggestion))) }
        },
        // These have templates, or are for other readers.
        Block::Sections(_) | Block::ForModels(..) => html! {},
    }
}
