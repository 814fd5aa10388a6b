"""Machines and workloads by name or from files."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path

from topolane import networks, texts
from topolane._engine import InputError, Machine, Workload, presets
from topolane.options import option
from topolane.units import plural

ASSUMED_CABLES = "the file says nothing of cables: one of 4 GB/s is assumed everywhere"
"""A note for a machine without known cables, if their speed changes a result."""


def machine(
    source: str | Path,
    format: str | None = None,
    *,
    nodes: str | None = None,
    topology: str | None = None,
    join: str | Path | None = None,
    sub_domains: bool = False,
    hosts: str | None = None,
) -> Machine:
    """The machine with this name, or the one that a file describes.

    format: one of `_engine.machine_formats`; by default guessed from the file's name and text.
    nodes: a hostlist that selects a part of the machine: these nodes and the switches above them.
    topology: the topology to use from a file that holds several.
    join: a second file for the same nodes. Domains, block sizes and the inside of nodes come from it, and
    nodes that only it names. If only this file knows cables, the two files change roles.
    sub_domains: use accelerator sub-domains as the domains.
    hosts: a hostlist of the devices that are nodes, for a file that records only cables.

    Other networks that the file names are in `Machine.networks`. What was assumed or skipped is in
    `Machine.notes`. Raises InputError for an unknown name and for a file that does not parse or is not a
    tree.
    """
    whole = _whole_machine(source, format, topology, sub_domains=sub_domains, hosts=hosts)
    if join is not None:
        whole = _joined(whole, source, join, sub_domains=sub_domains)
    if nodes is None:
        return whole
    return whole.only(whole.nodes_named(nodes))


def tree(source: str | Path) -> Machine:
    """The machine with this name or in this file. Raises InputError as `machine` does, and if it is no tree."""
    found = machine(source)
    if found.wiring != "tree":
        raise InputError(f"{source}: the machine is a {found.wiring}, and only a tree will do here")
    return found


def _joined(first: Machine, source: str | Path, join: str | Path, *, sub_domains: bool) -> Machine:
    second = _whole_machine(join, None, None, sub_domains=sub_domains)
    if second.knows_cables and not first.knows_cables:
        first, second = second, first
    try:
        joined, notes = first.joined(second)
    except InputError as error:
        raise InputError(f"{source} with --join {join}: {error}") from error
    return joined.with_notes([*first.notes, *second.notes, *notes])


def _whole_machine(
    source: str | Path,
    format: str | None,
    topology: str | None,
    *,
    sub_domains: bool,
    hosts: str | None = None,
) -> Machine:
    preset = Machine.preset(str(source))
    if preset is not None:
        if topology is not None:
            raise InputError(f"--topology {texts.shown(topology)}: machine {source} has one topology")
        if hosts is not None:
            raise InputError(
                f"--hosts {texts.shown(hosts)}: machine {source} says itself which its nodes are"
            )
        return preset
    try:
        machine = _in_file(source, format, topology, sub_domains=sub_domains, hosts=hosts)
    except texts.NoFileError:
        names = ", ".join(name for name, _ in presets())
        raise InputError(
            f"no machine and no file is called {texts.shown(str(source), texts.PATH)}; there are {names}"
        ) from None
    return networks.read(machine, source, _in_file)


def _in_file(
    source: str | Path,
    format: str | None = None,
    topology: str | None = None,
    *,
    sub_domains: bool = False,
    hosts: str | None = None,
) -> Machine:
    """The machine in a file, without other networks."""
    content = texts.read_bytes(source)
    text = texts.decoded(texts.unzipped(content, str(source)), str(source))
    if not text.strip():
        raise InputError(f"{source}: the file is empty")
    return Machine.parse(
        text,
        str(source),
        format,
        topology=topology,
        sub_domains=sub_domains,
        hosts=hosts,
        included=_included(text, Path(source), format),
    )


MOST_INCLUDED = 256


def _included(text: str, source: Path, format: str | None) -> dict[str, tuple[str, str]]:
    """Path and text of each file that a topology.conf includes, by the name in its Include line.

    A name is relative to the directory of `source`, even in an included file, because Slurm has all these
    files in one directory. Raises InputError, with the line of the Include, for a file that cannot be read.
    """
    found: dict[str, tuple[str, str]] = {}
    waiting = [(source, text)]
    for place, content in waiting:
        for line, name in Machine.includes(content, str(source), format):
            if name in found or "*" in name or len(found) >= MOST_INCLUDED:
                continue  # the reader reports what is wrong
            path = source.parent / name
            try:
                found[name] = str(path), texts.read_text(path)
            except InputError as error:
                raise InputError(f"{place}:{line}: Include: {error}") from error
            waiting.append((path, found[name][1]))
    return found


@dataclasses.dataclass(frozen=True)
class Shape:
    """How to read a log and what to change in it. None changes nothing."""

    cores_per_node: int | None = option(
        None,
        "N: turn processors of the log into nodes of N cores [default: as its header says]. auto or fixed:K, with "
        "--network: cores of each node that a job uses (docs/guides/cores-per-node.md).",
    )
    gpus_per_node: int | None = option(
        None,
        "If the log counts only GPUs (the Philly and Lingjun traces): GPUs of a node. A job of fewer GPUs shares a "
        "node, others take whole nodes.",
    )
    limit: int | None = option(
        None, "Use only the first N jobs by submission, counted after other options have skipped jobs."
    )
    partition: str | None = option(None, "Use only the jobs of this partition of the log.")
    drop_hosts: bool = option(
        False,
        "Forget which nodes the jobs of the log ran on, to replay it on a machine that has none of these nodes.",
    )
    shared: bool = option(
        False, "Let jobs of a sacct log share nodes, by cores, memory and generic resources."
    )
    days: float | None = option(None, "Use only the jobs submitted in the first N days.")
    nodes_x: float | None = option(None, "Multiply the node count of every job by this factor.")
    squeeze: float | None = option(
        None, "Multiply the time between submissions by this factor (0.6: a long queue)."
    )
    load: float | None = option(None, "Scale the time between submissions to reach this load of the machine.")
    jitter: float | None = None
    """Shortens each job's run time by a random part of up to this fraction. `seed` determines the parts."""


def workload(
    source: str | Path, machine_nodes: int | None = None, *, seed: int = 0, shape: Shape = Shape()
) -> Workload:
    """The workload with this name: a synthetic month, or the jobs of a log (SWF, CSV, `sacct -P`, traces of
    GPU jobs; gzipped or not).

    The changes of `shape` are applied. With `machine_nodes`, jobs wider than that are skipped and counted;
    without it, no load can be set. Raises InputError for an unknown name and for a log that does not parse.
    """
    return shaped(unshaped(source, seed, shape), machine_nodes, seed, shape)


def unshaped(source: str | Path, seed: int, shape: Shape) -> Workload:
    """A workload that is read as the shape says, without the changes of `shaped`."""
    path = Path(source)
    # A pipe is read like a file: `--trace <(sacct ...)`.
    if os.path.exists(path) and not path.is_dir():
        jobs = Workload.read(
            str(path),
            cores_per_node=shape.cores_per_node,
            partition=shape.partition,
            shared=shape.shared,
            gpus_per_node=shape.gpus_per_node,
        )
    else:
        try:
            jobs = Workload.generate(str(source), seed)
        except InputError as error:
            if path.is_dir():
                raise InputError(f"{source}: a directory, where a log is wanted") from None
            if path.suffix or len(path.parts) != 1:
                raise InputError(f"{source}: there is no such file") from None
            raise InputError(f"{error}; and there is no file of that name") from None
    if shape.partition is not None and not len(jobs):
        raise InputError(f"{source}: no job is of partition {shape.partition!r}")
    return jobs.without_hosts() if shape.drop_hosts else jobs


def shaped(jobs: Workload, machine_nodes: int | None, seed: int, shape: Shape) -> Workload:
    """The workload with the changes of a shape, as `workload` makes them."""
    changes = {name: getattr(shape, name) for name in CHANGES}
    if machine_nodes is None and not any(value is not None for value in changes.values()):
        return jobs
    return jobs.shaped(machine_nodes, **changes, seed=seed)


CHANGES = ("days", "nodes_x", "squeeze", "load", "limit", "jitter")
"""Fields of a shape that change jobs after reading."""


BEYOND_LIMIT = "beyond the limit"
"""The reason for jobs that a user's limit skips."""


def runnable(source: str | Path, jobs: Workload) -> Workload:
    """The same workload. Raises InputError if it has no job to run."""
    if not len(jobs):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(jobs.left_out.items()))
        raise InputError(f"{source}: no job is left to run" + (f" (skipped: {reasons})" if reasons else ""))
    return jobs


def skipped_notes(reasons: Mapping[str, int]) -> list[str]:
    """A line for each reason why records of a log are not in the workload."""
    return [f"skipped: {count:,} {reason}" for reason, count in sorted(reasons.items())]


def reading_notes(jobs: Workload) -> list[str]:
    """Sentences on what a reader changed and which numbers it assumed."""
    return [*(f"{plural(count, 'job')} {what}" for what, count in jobs.changed.items()), *jobs.assumed]
