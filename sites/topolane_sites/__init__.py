"""The live driver for several sites: watches MPI programs, chooses sites, moves guests."""
