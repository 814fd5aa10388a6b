"""Identifies this build of Topolane: runs of two builds may differ in their last digits."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
from pathlib import Path

from topolane import _engine

PARTS = ("", "inference/", "sweep/")
"""Folders of the package with modules that affect a run."""


def version() -> str:
    """The version of the installed distribution."""
    try:
        return importlib.metadata.version("topolane")
    except importlib.metadata.PackageNotFoundError:
        return "of a clone"


@functools.cache
def build() -> str:
    """A digest of the engine and of the modules that run it. It is the same in a wheel and in the clone that
    the wheel was built from.
    """
    package = Path(__file__).parents[1]
    digest = hashlib.sha256(Path(_engine.__file__).read_bytes())
    for module in sorted(module for part in PARTS for module in package.glob(f"{part}*.py")):
        digest.update(module.read_bytes())
    return digest.hexdigest()
