"""The files that a task names: their content, and the same task with copies of them."""

from __future__ import annotations

import dataclasses
import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING

from topolane import texts
from topolane._engine import InputError, Machine
from topolane.policy import resolve
from topolane.sources import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from topolane.sweep import Task


def named(task: Task) -> list[str]:
    """The files that a task reads, by their absolute paths. Raises InputError for a pipe, which can be read only once."""
    found = {os.path.abspath(name) for name in _names(task) if os.path.lexists(name)}
    for name in found:
        if not os.path.isfile(name) and not os.path.isdir(name):
            raise InputError(
                f"{name}: not a regular file: save its content to a file first, because runs over a pipe cannot be sent or kept"
            )
    return sorted(name for name in found if os.path.isfile(name))


def read(names: list[str]) -> dict[str, bytes]:
    """The content of each file."""
    return {name: bytes(texts.read_bytes(name, texts.LARGE)) for name in names}


@functools.cache
def module_of(policy: str) -> str | None:
    """The module with the class of a Python policy, including policies of plug-ins; None for a policy of
    Topolane.
    """
    found = resolve(policy)
    return None if isinstance(found, str) else type(found).__module__


def moved(task: Task, place: Callable[[str], str]) -> Task:
    """The task with every file name replaced by what `place` returns for it."""
    network = task.network
    if network is not None:
        routing = place(network.routing) if isinstance(network.routing, str) else network.routing
        patterns = (place(one) if isinstance(one, str) else one for one in network.patterns)
        network = dataclasses.replace(network, routing=routing, patterns=tuple(patterns))
    return dataclasses.replace(
        task,
        machine=place(task.machine),
        workload=place(task.workload),
        join=None if task.join is None else place(task.join),
        queue_config=place(task.queue_config) if isinstance(task.queue_config, str) else task.queue_config,
        outages=place(task.outages) if isinstance(task.outages, str) else task.outages,
        failures=place(task.failures) if isinstance(task.failures, str) else task.failures,
        network=network,
    )


def _names(task: Task) -> Iterator[str]:
    """The strings in a task that may be file names."""
    if Machine.preset(task.machine) is None:
        yield task.machine
        yield from _of_networks(task.machine, task.machine_format, task.topology)
    if task.join is not None:
        yield task.join
        yield from _of_networks(task.join, None, None)
    yield task.workload
    of_files = (task.config_of_queue(), task.outages, task.failures)
    yield from (name for name in of_files if isinstance(name, str))
    if task.network is not None:
        if isinstance(task.network.routing, str):
            yield task.network.routing
        names = (name for name in task.network.patterns if isinstance(name, str))
        yield from (name for name in names if name.endswith((".csv", ".mtx")))


@functools.lru_cache(maxsize=16)
def _of_networks(source: str, format: str | None, topology: str | None) -> tuple[str, ...]:
    """The files of the other networks that a machine file names."""
    folder = Path(source).parent
    entries = machine(source, format, topology=topology).network_entries
    return tuple(str(folder / file) for _, file, *_ in entries)
