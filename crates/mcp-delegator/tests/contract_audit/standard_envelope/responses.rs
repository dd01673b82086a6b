//! Statements about responses.

use crate::row::Section;

pub(crate) const SECTIONS: &[Section] = &[];
