//! Statements about the envelope.

use crate::row::Section;

pub(crate) const SECTIONS: &[Section] = &[];
