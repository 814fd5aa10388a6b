"""Workloads of tasks: a process reads a log once for all of them, because a workload never changes."""

from __future__ import annotations

import dataclasses
import functools
import os
import stat
from typing import TYPE_CHECKING, Any

from topolane import sources
from topolane.sources import CHANGES, Shape

if TYPE_CHECKING:
    from topolane._engine import Workload

Version = tuple[int, ...]
"""Distinguishes a file from another one, and from itself after it was written."""


def workload(source: str, machine_nodes: int, *, seed: int, shape: Shape) -> Workload:
    """The same as `sources.workload`. The last one is kept, and given again as long as its file is the same."""
    version = _version(source)
    if version is None:
        return sources.workload(source, machine_nodes, seed=seed, shape=shape)
    if version and shape.jitter is None:
        seed = 0  # It draws nothing.
    return _shaped(source, version, machine_nodes, seed, shape)


def _version(source: str) -> Version | None:
    """Empty for a synthetic workload; None for what can be read only once, such as a pipe."""
    try:
        found = os.stat(source)
    except (OSError, ValueError):
        return ()
    if not stat.S_ISREG(found.st_mode):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


@functools.lru_cache(maxsize=1)
def _shaped(source: str, version: Version, machine_nodes: int, seed: int, shape: Shape) -> Workload:
    unchanged: dict[str, Any] = dict.fromkeys(CHANGES)
    read_as = dataclasses.replace(shape, **unchanged)
    whole = _unshaped(source, version, 0 if version else seed, read_as)
    return sources.shaped(whole, machine_nodes, seed, shape)


@functools.lru_cache(maxsize=1)
def _unshaped(source: str, _: Version, seed: int, shape: Shape) -> Workload:
    return sources.unshaped(source, seed, shape)
