"""Plans: which guest goes where, from what crosses between sites."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from topolane.mpi.counts import Matrix
from topolane_sites.model import Guest, Host, WanLink
from topolane_sites.planner import make
from topolane_sites.problem import Problem, ProgramGroup


def problem(cores: int, pairs: list[tuple[int, int]], on: list[str], turns: float = 100.0) -> Problem:
    """Sites east and west, each one host of `cores` cores; a program of one rank a guest, whose pairs exchange."""
    guests = tuple(Guest(f"g{at}", "c", 1, 1 << 28, host) for at, host in enumerate(on))
    both = np.array([*pairs, *[(b, a) for a, b in pairs]])
    counts = np.tile([turns, 1e4, turns], (len(both), 1))
    return Problem(
        sites=("east", "west"),
        hosts=(Host("e", "east", cores, 1 << 34), Host("w", "west", cores, 1 << 34)),
        links=(WanLink(("east", "west"), 0.005, 1e8),),
        down=frozenset(),
        groups=(
            ProgramGroup(
                programs=("p",),
                guests=guests,
                matrix=Matrix(len(on), both[:, 0], both[:, 1], counts),
                guest_of=np.arange(len(on)),
                sites=(),
                remaining=3600.0,
                settled=float("inf"),
            ),
        ),
        others=(),
        skipped={},
    )


def planned(asked: Problem, policy: str = "predicted-loss") -> dict[str, str]:
    """The target of every guest that moves."""
    plan = make(asked, policy)
    assert all(move.source != move.target for move in plan.moves)
    return {move.guest: move.target for move in plan.moves}


def test_a_program_goes_where_it_fits_whole() -> None:
    """Two guests of a ring on each site, and room for four on one: the two of one site go to the others."""
    moved = planned(problem(4, [(0, 1), (1, 2), (2, 3), (3, 0)], ["e", "e", "w", "w"]))
    assert len(moved) == 2 and len(set(moved.values())) == 1


def test_chatty_guests_change_places_where_the_program_must_stay_spread() -> None:
    """Room for three guests on each site: 0 talks with 2 and 1 with 3, across. Two guests change places, one each way,
    and nothing crosses any more."""
    on = ["e", "e", "w", "w"]
    moved = planned(problem(3, [(0, 2), (1, 3)], on))
    assert sorted(moved.values()) == ["e", "w"]
    after = [moved.get(f"g{at}", host) for at, host in enumerate(on)]
    assert after[0] == after[2] and after[1] == after[3]


@pytest.mark.parametrize("policy", ["stay", "inter-site-traffic"])
def test_others_change_no_places(policy: str) -> None:
    """The rule of 2007 knows halves of ranks only, and who stays stays."""
    assert planned(problem(3, [(0, 2), (1, 3)], ["e", "e", "w", "w"]), policy) == {}


def test_no_guest_moves_where_chatty_guests_are_together() -> None:
    """0 talks with 1 and 2 with 3: nothing crosses, whatever room there is."""
    assert planned(problem(4, [(0, 1), (2, 3)], ["e", "e", "w", "w"])) == {}
    assert planned(problem(3, [(0, 1), (2, 3)], ["e", "e", "w", "w"])) == {}


def test_a_little_traffic_moves_no_guest() -> None:
    """One exchange in ten seconds over 5 ms costs less than two moves must bring."""
    assert planned(problem(3, [(0, 2), (1, 3)], ["e", "e", "w", "w"], turns=0.1)) == {}


def test_full_hosts_take_no_guest() -> None:
    """Two guests that would change places between full hosts have no room meanwhile: nothing moves, and the plan says
    why. With room for one more on one side both moves are there, the one into the room first."""
    on, pairs = ["e", "e", "w", "w"], [(0, 2), (1, 3)]
    full = make(problem(2, pairs, on), "predicted-loss")
    assert full.moves == () and "no host has room" in full.left_out["p"]
    asked = problem(2, pairs, on)
    roomy = replace(asked, hosts=(asked.hosts[0], replace(asked.hosts[1], cores=3)))
    first, second = make(roomy, "predicted-loss").moves
    assert (first.target, second.target) == ("w", "e")
