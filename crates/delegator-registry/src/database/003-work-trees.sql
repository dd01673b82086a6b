-- The trees of a task's additional directories, as a JSON array; the tree of its working directory is in work_tree.
ALTER TABLE tasks ADD COLUMN more_work_trees TEXT;
