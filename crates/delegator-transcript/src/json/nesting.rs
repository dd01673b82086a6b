//! Which brackets are open, one bit each: depth costs memory by the bit and no stack at all.

/// The open brackets around a position, innermost last. A set bit is an object.
#[derive(Default)]
pub(super) struct Nesting {
    depth: usize,
    /// The innermost 64 brackets, the innermost in the lowest bit.
    near: u64,
    /// What was pushed out of `near`, 64 at a time. Empty for any sane document.
    far: Vec<u64>,
}

impl Nesting {
    pub(super) fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.far.push(self.near);
        }
        self.near = (self.near << 1) | u64::from(is_object);
        self.depth += 1;
    }

    pub(super) fn pop(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        self.near >>= 1;
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.near = self.far.pop().unwrap_or_default();
        }
    }

    /// `None` outside of all brackets.
    pub(super) fn innermost_is_object(&self) -> Option<bool> {
        (self.depth > 0).then_some(self.near & 1 == 1)
    }
}
