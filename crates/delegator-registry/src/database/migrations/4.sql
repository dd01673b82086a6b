-- The changes were last to be applied to a work tree that had changed in the same places, and were not.
ALTER TABLE tasks ADD COLUMN has_apply_conflict INTEGER NOT NULL DEFAULT 0;
