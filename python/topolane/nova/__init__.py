"""OpenStack Nova: a filter and a weigher for its scheduler, and migrations of running servers."""
