"""What slurmrestd does not tell, from Slurm's own commands."""

from __future__ import annotations

import os
import subprocess

from topolane._engine import InputError
from topolane.live.clients.scontrol import scontrol
from topolane.slurm.tokens import SlurmError

QUESTION = "topolane: who holds?"
"""A comment by which the submission hook is asked for its partitions; no job comes of it."""


def update(job: str, change: str) -> None:
    """`scontrol update` of a job, or of a task such as 7_1. Raises SlurmError."""
    try:
        scontrol("update", f"JobId={job}", change)
    except InputError as error:
        raise SlurmError(str(error)) from error


def who_holds() -> str:
    """What sbatch says when the stanza that slurmctld runs is asked for its partitions."""
    words = ["sbatch", "--test-only", f"--comment={QUESTION}", "--wrap", "true"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SBATCH_")}
    try:
        return subprocess.run(words, capture_output=True, text=True, env=environment).stderr
    except OSError as error:
        return f"sbatch cannot be run: {error.strerror}"
