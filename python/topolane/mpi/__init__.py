"""Watching MPI programs: the preloaded library, its receiver, the matrices it yields."""
