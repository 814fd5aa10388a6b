"""A scheduler for a Flux instance: Flux keeps the jobs, the engine chooses nodes and order."""

from pathlib import Path


def module_file() -> Path:
    """The path of the module that `flux module load` takes."""
    return Path(__file__).with_name("sched-topolane.py")
