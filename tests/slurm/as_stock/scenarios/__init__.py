"""What must work as on stock Slurm: each scenario is a function of an `Observed`, and its docstring a row's title.

A scenario begins on an idle machine. At most one job at a time needs links between leaves, so isolation cannot make a
job wait.
"""

from __future__ import annotations

from . import administration, gpus, limits, preemption, queueing, reservations, running, where
from .registry import SCENARIOS

__all__ = [
    "SCENARIOS",
    "administration",
    "gpus",
    "limits",
    "preemption",
    "queueing",
    "reservations",
    "running",
    "where",
]
