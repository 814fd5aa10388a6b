"""One file per figure. Each has `draw(runs, picture) -> Plot`, but for the tree, one for each run."""
