"""OpenStack Nova: a filter and a weigher for its scheduler, and moves of what already runs."""
