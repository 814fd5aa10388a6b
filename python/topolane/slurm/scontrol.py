"""Calls of Slurm's own commands, for what slurmrestd lacks."""

from __future__ import annotations

import os
import subprocess

from topolane._engine import InputError
from topolane.live.clients.scontrol import scontrol
from topolane.slurm.tokens import SlurmError

QUESTION = "topolane: who holds?"
"""A job with this comment makes the submission hook answer with its partitions; the job itself is refused."""


def update(job: str, change: str) -> None:
    """`scontrol update` of a job, or of a task such as 7_1. Raises SlurmError."""
    try:
        scontrol("update", f"JobId={job}", change)
    except InputError as error:
        raise SlurmError(str(error)) from error


def hook_answer() -> str:
    """The submission hook's answer about its partitions, as sbatch prints it."""
    words = ["sbatch", "--test-only", f"--comment={QUESTION}", "--wrap", "true"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SBATCH_")}
    try:
        return subprocess.run(words, capture_output=True, text=True, env=environment).stderr
    except OSError as error:
        return f"sbatch cannot be run: {error.strerror}"
