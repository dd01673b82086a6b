//! Statements about reflection: commands as tools.

use crate::row::Section;

pub(crate) const SECTIONS: &[Section] = &[];
