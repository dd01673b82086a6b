//! Restore points: how they are stored, read, merged and deleted.

mod deleted_submodule;
mod end_state;
mod merge_packs;
mod point;
mod write;

pub use deleted_submodule::EmptyWorkTree;
pub use end_state::{AgentChanges, Doubt};
pub(crate) use end_state::{EndRecord, EndState};
pub use merge_packs::{delete_dropped_objects, merge_packs};
pub use point::{
    RestorePoint, StoredIndex, StoredPoint, drop_point, holds_unique_content, stored_points,
    stored_points_named,
};
pub(crate) use point::{SavedState, read_points};
pub(crate) use write::{CommittedTree, is_name_free, record};
