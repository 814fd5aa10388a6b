"""Watches MPI programs: the preloaded library, the receiver of its reports, and the matrices that result."""
