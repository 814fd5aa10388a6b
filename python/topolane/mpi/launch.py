"""Launch commands that load the library into the ranks of an MPI program and, if possible, into no other
process.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from topolane._engine import InputError

HYDRA, OPEN_MPI, SRUN, OTHER = "hydra", "openmpi", "srun", "other"


def launcher(command: Sequence[str]) -> str:
    """The kind of launcher that a command starts with. Raises InputError if it is not found."""
    path = shutil.which(command[0])
    if path is None:
        raise InputError(f"{command[0]}: no such command")
    name = os.path.basename(path)
    if name.startswith("srun"):
        return SRUN
    if not name.startswith(("mpiexec", "mpirun", "orterun", "prterun")):
        return OTHER
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace").stdout
    except OSError as error:
        raise InputError(f"{command[0]}: cannot be started: {error.strerror}") from error
    if "HYDRA" in said or "Intel(R) MPI" in said:
        return HYDRA
    return OPEN_MPI if any(word in said for word in ("Open MPI", "OpenRTE", "PRTE", "PRRTE")) else OTHER


def with_library(
    command: Sequence[str], library: Path, environment: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """The command that starts the ranks with the library, and its whole environment.

    Raises InputError if the launcher is not found, or if an option conflicts with the library.
    """
    kind = launcher(command)
    around = dict(os.environ) | dict(environment)
    others = os.environ.get("LD_PRELOAD")
    preload = f"{library}:{others}" if others else str(library)
    words = list(command)
    if kind == HYDRA:
        # This launcher passes the environment on without an option.
        return [words[0], "-genv", "LD_PRELOAD", preload, *words[1:]], around
    if kind == OPEN_MPI:
        options = [word for name in sorted(environment) for word in ("-x", name)]
        options += ["-x", f"LD_PRELOAD={preload}"]
        return _in_each_part(words, options), around
    if kind == SRUN:
        if any(word.startswith("--export") for word in words):
            raise InputError(
                f"{words[0]} --export: the ranks need more; leave it out here, set SLURM_EXPORT_ENV instead"
            )
        return [words[0], f"--export=ALL,LD_PRELOAD={preload}", *words[1:]], around
    return words, around | {"LD_PRELOAD": preload}


def _in_each_part(words: Sequence[str], options: Sequence[str]) -> list[str]:
    """The words with the options in each part between colons, because Open MPI's -x applies to one part only."""
    result = [words[0], *options]
    for word in words[1:]:
        result += [word, *options] if word == ":" else [word]
    return result
