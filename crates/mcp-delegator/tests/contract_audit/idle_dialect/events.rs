//! Statements about the stream of events.

use crate::row::Section;

pub(crate) const SECTIONS: &[Section] = &[];
