"""The error that every source of Slurm's state raises."""

from __future__ import annotations


class SlurmError(Exception):
    """An error of Slurm, in one sentence."""
