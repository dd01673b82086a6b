//! The plan of a turn as one item: started, updated, and completed at the end of the turn.

use super::{Effect, ItemIds, item};
use crate::event::{ItemDetails, ItemPhase, Todo};
use crate::json::Text;

#[derive(Debug, Default)]
pub(super) struct Plan {
    open: Option<(Text<'static>, Vec<Todo<'static>>)>,
}

impl Plan {
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
