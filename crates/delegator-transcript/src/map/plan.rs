//! The plan of a turn as one item: started, updated, and completed at the end of the turn.

use super::effect::Effects;
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

    pub(super) fn update<'a>(&mut self, items: Vec<Todo<'a>>, effects: &mut Effects<'_, 'a>) {
        let owned_items = items.iter().cloned().map(Todo::into_owned).collect();
        let (phase, id) = match self.open.take() {
            Some((id, _)) => (ItemPhase::Updated, id),
            None => (ItemPhase::Started, effects.ids.next()),
        };
        self.open = Some((id.clone(), owned_items));
        effects.item(phase, id, None, ItemDetails::TodoList { items });
    }

    pub(super) fn complete(&mut self, effects: &mut Effects<'_, '_>) {
        if let Some((id, items)) = self.open.take() {
            effects.item(ItemPhase::Completed, id, None, ItemDetails::TodoList { items });
        }
    }
}
