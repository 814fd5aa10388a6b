"""Nodes that a job could use: what reservations leave to it, from records made by hand. test_gres.py has generic resources."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from room_records import NOW, look_at, waits
from topolane.slurm.candidates import HostLists, could_use
from topolane.slurm.records import Reservation

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
