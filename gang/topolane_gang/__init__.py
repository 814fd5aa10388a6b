"""Gangs on Linux: jobs whose threads all run in the same time slice."""
