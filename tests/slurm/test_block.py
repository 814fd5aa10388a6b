"""Policy slurm-block: the nodes that a real slurmctld with topology/block gave, and gives now."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from block_states import Ask, Layout, Slurm, read
from live_cluster import Inside, running

RECORDED = list(read(Path(__file__).parent / "answers" / "block-of-24.11.5.jsonl"))


def agree(layout: Layout, asks: Sequence[Ask]) -> None:
    """Every decision is Slurm's."""
    machine = layout.machine()
    for ask in asks:
        assert ask.ours(machine) == ask.chosen, (layout.facts(), ask.facts())


@pytest.mark.parametrize(
    ("layout", "asks"), RECORDED, ids=[f"layout{number}" for number in range(len(RECORDED))]
)
def test_recorded_decisions(layout: Layout, asks: Sequence[Ask]) -> None:
    """The policy gives the same nodes as Slurm 24.11.5 gave on real slurmds, and refuses what it refused. How they were
    recorded: `make bench BENCH="slurm/block --record FILE"`."""
    agree(layout, asks)


def test_the_record_has_every_kind_of_decision() -> None:
    """Jobs with and without segments, placed and refused, with and without named block sizes, and blocks with spare nodes."""
    kinds = Counter(ask.kind() for _, asks in RECORDED for ask in asks)
    assert kinds.keys() == {"segments", "segments, refused", "no segments", "no segments, refused"}
    assert min(kinds.values()) > 20
    assert {bool(layout.sizes) for layout, _ in RECORDED} == {True, False}
    assert any(block.bit_count() > layout.base for layout, _ in RECORDED for block in layout.blocks)


def test_a_running_slurm(slurm: None, inside: Inside, tmp_path_factory: pytest.TempPathFactory) -> None:
    """On real slurmds of Slurm 24.11, jobs start on the nodes that the policy says: random blocks, nodes out of service, jobs
    that hold nodes."""
    rng = random.Random(22)
    with running(36, tmp_path_factory.mktemp("block"), inside=inside) as up:
        here = Slurm(up)
        for _ in range(2):
            layout = Layout.drawn(36, rng)
            here.begin(layout)
            agree(layout, list(here.asks(layout, 25, rng)))
