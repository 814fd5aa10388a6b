"""Nodes that a job could use, from records made by hand. test_gres.py reads what Slurm itself writes of generic resources."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from room_records import NOW, look_at, waits
from topolane.slurm.candidates import HostLists, could_use
from topolane.slurm.records import Gres, Partition, Reservation, SlurmJob, Snapshot

RESERVED = {"left": "node[1-6]", "right": "node[7-12]", "licences": ""}


@pytest.mark.parametrize(
    ("named", "usable"),
    [
        ("", range(13, 25)),
        ("left", range(1, 7)),
        ("left,right", range(1, 13)),
        ("left,licences", [*range(1, 7), *range(13, 25)]),
        ("gone", range(13, 25)),
    ],
)
def test_a_job_may_use_the_nodes_of_every_reservation_that_it_names(
    tmp_path: Path, named: str, usable: range | list[int]
) -> None:
    """It may use no others, unless one of its reservations is of licences alone; and none of a reservation of others."""
    snapshot = look_at(tmp_path, waits(9, 2, reservation=named)).snapshot
    assert snapshot is not None
    kept = {name: Reservation(name, nodes, NOW - 60, NOW + 3600) for name, nodes in RESERVED.items()}
    snapshot = dataclasses.replace(snapshot, reservations=kept)
    job = dataclasses.replace(snapshot.jobs[9], start=NOW, walltime=600.0)
    found, ignored = could_use(job, snapshot, HostLists(snapshot.nodes))
    assert (found, ignored) == ({f"node{number}" for number in usable}, [])


def with_nodes(state: Path, **asked: Any) -> tuple[SlurmJob, Snapshot]:
    """A job that asks for this, and four nodes of its partition: of 16 cores and a GiB, with features a and b, a, b, and none. The first
    has GPUs of two models, the second some of no model. A fifth node is in another partition.
    """
    look = look_at(state, waits(9, 2, **asked))
    assert look.snapshot is not None
    first, second, third, fourth, fifth = list(look.snapshot.nodes.values())[:5]
    nodes = (
        dataclasses.replace(first, features=frozenset("ab"), gres=(("gpu:h100", 4), ("gpu:a100", 2))),
        dataclasses.replace(second, features=frozenset("a"), gres=(("gpu", 3),)),
        dataclasses.replace(third, features=frozenset("b")),
        fourth,
        fifth,
    )
    snapshot = dataclasses.replace(
        look.snapshot,
        nodes={node.name: node for node in nodes},
        partitions={
            "p": Partition("p", "node[1-4]", True, None),
            "other": Partition("other", "node5", True, None),
        },
    )
    return snapshot.jobs[9], snapshot


def usable(state: Path, **asked: Any) -> tuple[list[int], list[str]]:
    """The numbers of the nodes that a job could use which asks for this, and its options that are not heeded."""
    job, snapshot = with_nodes(state, **asked)
    found, ignored = could_use(job, snapshot, HostLists(snapshot.nodes))
    return sorted(int(name.removeprefix("node")) for name in found), ignored


def gpus(name: str, count: int, per_process: bool = False) -> Any:
    return (Gres(f"gres:{name}:{count}", name, count, per_process),)


@pytest.mark.parametrize(
    ("asked", "numbers"),
    [
        ({}, [1, 2, 3, 4]),
        ({"partitions": ("p", "other")}, [1, 2, 3, 4, 5]),
        ({"partitions": ("gone", "other")}, [5]),
        ({"excluded": "node[1-2]"}, [3, 4]),
        ({"cpus_per_process": 16}, [1, 2, 3, 4]),
        ({"cpus_per_process": 17}, []),
        ({"cpus_per_process": 8, "processes_per_node": 2}, [1, 2, 3, 4]),
        ({"cpus_per_process": 8, "processes_per_node": 3}, []),
        ({"memory_per_node": 1 << 30}, [1, 2, 3, 4]),
        ({"memory_per_node": (1 << 30) + 1}, []),
        ({"gres": gpus("gpu", 3)}, [1, 2]),
        ({"gres": gpus("gpu", 6)}, [1]),
        ({"gres": gpus("gpu", 7)}, []),
        ({"gres": gpus("gpu:a100", 2)}, [1]),
        ({"gres": gpus("gpu:a100", 3)}, []),
        ({"gres": gpus("nic", 1)}, []),
        ({"gres": gpus("gpu", 3, per_process=True), "processes_per_node": 2}, [1]),
        ({"gres": gpus("gpu", 4, per_process=True), "processes_per_node": 2}, []),
        ({"gres": gpus("gpu", 3), "processes_per_node": 2}, [1, 2]),
        ({"gres": gpus("gpu", 3, per_process=True)}, [1, 2]),
        ({"features": "a"}, [1, 2]),
        ({"features": "a&b"}, [1]),
        ({"features": "a|b"}, [1, 2, 3]),
    ],
)
def test_a_job_could_use_the_nodes_that_have_what_it_takes_of_each(
    tmp_path: Path, asked: dict[str, Any], numbers: list[int]
) -> None:
    """Exactly as much is enough, of each resource and for all processes on the node. GPUs of all models count for a job that names none;
    features joined by & must all be there, of those joined by a bar one.
    """
    assert usable(tmp_path, **asked) == (numbers, [])


@pytest.mark.parametrize(
    ("asked", "numbers", "ignored"),
    [
        ({"features": "a&b|c"}, [1, 2, 3, 4], ["--constraint=a&b|c"]),
        ({"switches": 1}, [1, 2, 3, 4], ["--switches"]),
        ({"required": "node1"}, [1, 2, 3, 4], ["--nodelist"]),
        ({"required": "node1", "allocated": "node[1-2]"}, [1, 2, 3, 4], ["--nodelist"]),
        ({"required": "node[1-2]", "allocated": "node[1-2]"}, [1, 2], []),
        ({"required": "node99", "allocated": "node1"}, [1, 2, 3, 4], ["--nodelist"]),
        ({"unsupported_option": "--contiguous"}, [1, 2, 3, 4], ["--contiguous"]),
        ({"allocated": "node5"}, [1, 2, 3, 4, 5], []),
    ],
)
def test_options_that_are_not_heeded_are_named(
    tmp_path: Path, asked: dict[str, Any], numbers: list[int], ignored: list[str]
) -> None:
    """A list of nodes is heeded if it names every node that the job has. The nodes that it has are always among those that it could use."""
    assert usable(tmp_path, **asked) == (numbers, ignored)


@pytest.mark.parametrize(
    ("start", "end", "walltime", "is_kept"),
    [
        (-60, 0, 600.0, False),
        (-60, 1, 600.0, True),
        (600, 700, 600.0, False),
        (599, 700, 600.0, True),
        (9e9, 9e9 + 1, None, True),
    ],
)
def test_a_reservation_keeps_a_job_off_if_it_begins_before_the_job_ends(
    tmp_path: Path, start: float, end: float, walltime: float | None, is_kept: bool
) -> None:
    """And if it ends after the job starts, in seconds from then. A job without a time limit meets all that begin later."""
    job, snapshot = with_nodes(tmp_path)
    other = Reservation("other", "node[1-2]", NOW + start, NOW + end)
    snapshot = dataclasses.replace(snapshot, reservations={"other": other})
    job = dataclasses.replace(job, start=NOW, walltime=walltime)
    found, _ = could_use(job, snapshot, HostLists(snapshot.nodes))
    assert found == {f"node{number}" for number in ((3, 4) if is_kept else (1, 2, 3, 4))}


def test_host_lists_of_a_slurm_without_nodes_are_empty() -> None:
    """And a name that is no node of Slurm has no place in a host list."""
    none, some = HostLists(()), HostLists(["a1", "a2", "b"])
    assert (none.read("a1"), none.text(["a1"]), some.read(""), some.read("a[1-3]")) == (
        set(),
        "",
        set(),
        None,
    )
    assert some.text(["b", "gone", "a2", "a1"]) == "a[1-2],b" and some.read("a[1-2]") == {"a1", "a2"}
