"""Slurm's plugin that sets the order of ranks in jobs (native/slurm)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from topolane._engine import InputError
from topolane.compiling import compiled

SOURCE = Path(__file__).parent / "native" / "topolane_spank.c"


def build(compiler: str, directory: Path) -> str:
    """Compiles the plugin into a directory. Returns the line for plugstack.conf that loads it.

    It must be built with the headers of the Slurm that loads it. Raises InputError if the compiler or
    slurm/spank.h is missing, or if the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--build {directory}: {error.strerror}") from error
    made = directory.resolve() / "topolane_spank.so"
    with tempfile.TemporaryDirectory(prefix=".topolane-", dir=made.parent) as folder:
        draft = Path(folder) / made.name  # what a running Slurm has loaded is replaced, not written over
        compiled("--cc", compiler, ["-std=c11", "-O2", "-fPIC", "-shared", str(SOURCE)], draft)
        draft.replace(made)
    return f"optional {made}"
