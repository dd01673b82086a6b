//! The plan of a turn as one item: started, updated, and completed at the end of the turn.

use super::effect::{Effect, item};
use super::item_ids::ItemIds;
use crate::event::{ItemDetails, ItemPhase, Todo};
use crate::json::Text;

#[derive(Debug, Default)]
pub(super) struct Plan {
    open: Option<(Text<'static>, Vec<Todo<'static>>)>,
}

impl Plan {
    /// Whether the open plan consists of exactly these steps.
    pub(super) fn is(&self, items: &[Todo<'_>]) -> bool {
        let same = |a: &Todo<'_>, b: &Todo<'_>| a.completed == b.completed && a.text == b.text;
        let equals =
            |open: &[Todo<'_>]| open.len() == items.len() && open.iter().zip(items).all(|(a, b)| same(a, b));
        self.open.as_ref().is_some_and(|(_, open)| equals(open))
    }

    pub(super) fn update<'a>(&mut self, items: Vec<Todo<'a>>, ids: &mut ItemIds) -> Effect<'a> {
        let owned_items = items.iter().cloned().map(Todo::into_owned).collect();
        let (phase, id) = match &mut self.open {
            Some((id, todos)) => {
                *todos = owned_items;
                (ItemPhase::Updated, id.clone())
            }
            None => {
                let id = ids.next();
                self.open = Some((id.clone(), owned_items));
                (ItemPhase::Started, id)
            }
        };
        item(phase, id, None, ItemDetails::TodoList { items })
    }

    pub(super) fn complete<'a>(&mut self) -> Option<Effect<'a>> {
        let (id, items) = self.open.take()?;
        Some(item(ItemPhase::Completed, id, None, ItemDetails::TodoList { items }))
    }
}
