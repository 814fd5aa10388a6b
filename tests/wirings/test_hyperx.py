"""No two jobs share a link in random states of small HyperX, by a checker that knows only the cables.

`python tests/wirings/test_hyperx.py STATES` checks that many states of each.
"""

from __future__ import annotations

import itertools
import random
import sys

import pytest
from closure import Link, shared_links
from hyperx_closure import HyperX
from test_isolation import states
from topolane._engine import LinkUse, Machine, Refusal, State
from topolane.sources import machine

PRESETS = {
    "square": "hyperx(size=6x6, nodes=2)",
    "rectangle": "hyperx(size=3x8, nodes=1, cables=2)",
    "many-nodes": "hyperx(size=4x4, nodes=8)",
    "cube": "hyperx(size=4x4x4)",
    "uneven": "hyperx(size=2x5x3, nodes=2, cables=1x2x3)",
    "four-dimensions": "hyperx(size=2x3x2x3)",
    "line": "hyperx(size=9, nodes=4)",
}
"""By name. One more is made below, with switches in another order and some without nodes."""


def with_bare_switches() -> str:
    """A HyperX of 4 x 5 whose switches are in no order of the leaves; three of them have no nodes."""
    draw = random.Random(4)
    names = [f"s{number}" for number in range(20)]
    draw.shuffle(names)
    lines = ['name = "m"', "[[site]]", 'name = "all"']
    for number in range(17):
        lines += ["[[site.switch]]", f'name = "s{number}"', f'nodes = "n[{3 * number}-{3 * number + 2}]"']
    below = ",".join(f"s{number}" for number in range(17))
    lines += ["[[site.switch]]", 'name = "all"', f'switches = "{below}"']
    return "\n".join([*lines, "[hyperx]", "dimensions = [4, 5]", f'switches = "{",".join(names)}"'])


WIRINGS = [*PRESETS, "bare-switches"]


def made(name: str) -> tuple[Machine, HyperX]:
    """The machine, and its cables as its file has them."""
    if name == "bare-switches":
        return Machine.parse(with_bare_switches(), "m.toml"), HyperX(with_bare_switches())
    fabric = machine(PRESETS.get(name, name))
    return fabric, HyperX(fabric.to("toml"))


def faults(name: str, policy: str, count: int, seed: int) -> list[dict[Link, list[int]]]:
    """The links that jobs share in random states under a policy."""
    fabric, hyperx = made(name)
    return shared_links(hyperx.links_of, states(fabric, policy, count, seed))


@pytest.mark.parametrize("name", WIRINGS)
def test_no_two_jobs_share_a_link(name: str) -> None:
    assert faults(name, "isolated", 400, seed=1) == []


@pytest.mark.parametrize("name", ["square", "cube"])
def test_the_checker_finds_what_first_fit_shares(name: str) -> None:
    """A policy that promises nothing is found out, so the checker can fail."""
    assert faults(name, "first-fit", 100, seed=1)


@pytest.mark.parametrize("name", WIRINGS)
def test_the_engine_counts_the_links_that_the_checker_finds(name: str) -> None:
    """Whether jobs meet, as `LinkUse` says it for `topolane links`, agrees with the cables. So do hops."""
    fabric, hyperx = made(name)
    number = {node: fabric.nodes_named(node)[0] for node in hyperx.switch_of}
    for policy in ("first-fit", "random"):
        for jobs in itertools.islice(states(fabric, policy, 30, seed=2), 30):
            use = LinkUse(
                fabric, [(job, [number[node] for node in nodes], []) for job, nodes in jobs.items()]
            )
            links = {job: hyperx.links_of(nodes) for job, nodes in jobs.items()}
            met = {a for a, b in itertools.permutations(jobs, 2) if links[a] & links[b]}
            assert {job for job in jobs if use.meetings(job)} == met
    for a, b in itertools.product(list(number)[::7], repeat=2):
        assert fabric.hops(number[a], number[b]) == hyperx.hops(a, b)


def most_free_slots(hyperx: HyperX, jobs: dict[int, list[str]]) -> int:
    """The most free nodes on a set of switches whose links no job uses: all sets of switches are tried.

    The links of a set are those of its pairs, so a set is free if each pair is.
    """
    busy = {node for nodes in jobs.values() for node in nodes}
    used = set().union(*(hyperx.links_of(nodes) for nodes in jobs.values()))
    room: dict[str, int] = {}
    for node, switch in hyperx.switch_of.items():
        if node not in busy:
            room[switch] = room.get(switch, 0) + 1
    switches = list(room)
    friends = {a: {b for b in switches if not hyperx.ways.links(a, b) & used} for a in switches}
    best = 0

    def grow(slots: int, able: list[str]) -> None:
        nonlocal best
        best = max(best, slots)
        for index, switch in enumerate(able):
            grow(slots + room[switch], [other for other in able[index + 1 :] if other in friends[switch]])

    grow(0, switches)
    return best


@pytest.mark.parametrize(
    "name", ["hyperx(size=3x4, nodes=2)", "hyperx(size=2x2x3)", "hyperx(size=2x5, nodes=3)"]
)
@pytest.mark.parametrize("policy", ["isolated", "random"])
def test_a_place_is_found_wherever_one_exists(name: str, policy: str) -> None:
    """On small machines, the jobs that get a place are those for which some set of switches has enough free nodes, and
    links of which none is used. The jobs in the way were placed in isolation, or at random."""
    fabric, hyperx = made(name)
    refused = placed = 0
    for jobs in itertools.islice(states(fabric, policy, 200, seed=3), 5, 200):
        free = fabric.nodes - sum(map(len, jobs.values()))
        most = most_free_slots(hyperx, jobs)
        state = State(fabric)
        for job, nodes in jobs.items():
            state.hold([fabric.nodes_named(node)[0] for node in nodes], id=job)
        for wanted in range(1, free + 1):
            found = not isinstance(state.place("isolated", wanted), Refusal)
            assert found == (wanted <= most), (jobs, wanted)
            refused, placed = refused + (not found), placed + found
    assert refused > 10 < placed


if __name__ == "__main__":
    number = int(sys.argv[1])
    for wiring in WIRINGS:
        print(
            f"{wiring}: {number:,} states, {len(faults(wiring, 'isolated', number, 1))} with a shared link",
            flush=True,
        )
