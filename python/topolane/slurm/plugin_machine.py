"""The machine that the topology plugin of slurmctld uses: one file, or two that describe the same nodes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from topolane import texts
from topolane._engine import InputError, Machine
from topolane.slurm.plugin_state import SUM_OF_NOTHING, PluginJobs, sum_of


@dataclasses.dataclass(frozen=True)
class ReadMachine:
    """A machine and the files from which it was read."""

    machine: Machine
    assumed: tuple[str, ...]
    """Sentences on what was assumed."""
    first: Machine
    """The machine of the first file alone. If there are two files, it numbers nodes and links differently."""
    contents: tuple[bytearray, ...] = dataclasses.field(repr=False)
    """The bytes of the files, in order."""

    @cached_property
    def sum(self) -> int:
        """The plugin's checksum of the files."""
        return _sum(self.contents)


def read_machine(paths: Sequence[Path]) -> ReadMachine:
    """Reads the machine in the files that topolane.conf names.

    paths: a machine file, or two: the one with the cables (a TOML machine or output of ibnetdiscover), then
    the one with the names of all nodes (topology.conf). Raises InputError in the cases in which the plugin
    refuses the files: one cannot be read or describes no tree, or the two contradict each other.
    """
    contents = _contents(paths)
    machines = [
        Machine.parse(texts.decoded(content, str(path)), str(path), only_trees=True)
        for path, content in zip(paths, contents)
    ]
    if len(machines) == 1:
        return ReadMachine(machines[0], (), machines[0], contents)
    try:
        machine, notes = machines[0].joined(machines[1])
    except InputError as error:
        raise InputError(f"{paths[1]}: {error}") from error
    return ReadMachine(machine, tuple(notes), machines[0], contents)


def sum_of_files(paths: Sequence[Path]) -> int:
    """The plugin's checksum of the files, equal to `ReadMachine.sum`, without reading the machine. Raises
    InputError.
    """
    return _sum(_contents(paths))


def machine_of(jobs: PluginJobs, directory: Path | None = None) -> ReadMachine:
    """Reads the machine that the plugin uses.

    directory: the directory of slurm.conf, to which relative paths refer. Raises InputError if a file cannot
    be read or has changed.
    """
    if jobs.machine is None:
        raise InputError("the plugin names no machine file")
    read = read_machine([(directory or Path()) / name for name in jobs.machine.split(",", 1)])
    if read.machine.nodes != jobs.nodes:
        raise InputError(
            f"{jobs.machine} has {read.machine.nodes} nodes now and had {jobs.nodes} when slurmctld read it: restart slurmctld"
        )
    return read


def nodes_in(target: Machine, source: Machine) -> list[int | None]:
    """For each node of `source`, the node of `target` with the same name; None if there is none."""
    return [target.node_named(source.node_name(node)) for node in range(source.nodes)]


def _contents(paths: Sequence[Path]) -> tuple[bytearray, ...]:
    if len(paths) > 2:
        raise InputError(f"--machine {paths[2]}: one machine file or two, not {len(paths)}")
    return tuple(texts.read_bytes(path) for path in paths)


def _sum(contents: Sequence[bytearray]) -> int:
    total = SUM_OF_NOTHING
    for content in contents:
        total = sum_of(content, total)
    return total
