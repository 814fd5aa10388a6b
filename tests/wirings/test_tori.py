"""No two jobs share a link in random states of small tori and pods, by a checker that knows only the table `[torus]`.

`python tests/wirings/test_tori.py STATES` checks that many states of each.
"""

from __future__ import annotations

import itertools
import random
import sys

import pytest
from closure import shared_links
from test_isolation import states
from topolane._engine import LinkUse, Machine, Refusal, State
from topolane.sources import machine
from torus_closure import Link, Torus

PRESETS = {
    "cube": "torus(size=4x4x4)",
    "mesh": "torus(size=4mx4mx4m)",
    "rings": "torus(size=5x7, nodes=2)",
    "mixed": "torus(size=6x3mx2, nodes=2)",
    "five-dimensions": "torus(size=2x3x2x3x2)",
    "six-dimensions": "torus(size=2x2x3mx2x2x2)",
    "pod": "torus(size=8x4x4, cube=2x2x2)",
    "pod-of-large-cubes": "torus(size=8x6x4, cube=4x3x2, nodes=2)",
    "flat-pod": "torus(size=8x8, cube=4x2)",
}
"""By name. One more is made below, with routers in another order and some without nodes."""


def with_bare_routers() -> str:
    """A torus of 4 x 5 whose routers are in no order of the leaves; three of them have no nodes."""
    draw = random.Random(4)
    names = [f"r{number}" for number in range(20)]
    draw.shuffle(names)
    lines = ['name = "m"', "[[site]]", 'name = "all"']
    for number in range(17):
        lines += ["[[site.switch]]", f'name = "r{number}"', f'nodes = "n[{3 * number}-{3 * number + 2}]"']
    below = ",".join(f"r{number}" for number in range(17))
    lines += ["[[site.switch]]", 'name = "all"', f'switches = "{below}"']
    return "\n".join([*lines, "[torus]", "dimensions = [4, 5]", f'routers = "{",".join(names)}"'])


WIRINGS = [*PRESETS, "bare-routers"]


def made(name: str) -> tuple[Machine, Torus]:
    """The machine, and its torus as its file has it."""
    if name in PRESETS:
        fabric = machine(PRESETS[name])
        return fabric, Torus(fabric.to("toml"))
    return Machine.parse(with_bare_routers(), "m.toml"), Torus(with_bare_routers())


def faults(name: str, policy: str, count: int, seed: int) -> list[dict[Link, list[int]]]:
    """The links that jobs share in random states under a policy."""
    fabric, torus = made(name)
    return shared_links(torus.links_of, states(fabric, policy, count, seed))


@pytest.mark.parametrize("name", WIRINGS)
def test_no_two_jobs_share_a_link(name: str) -> None:
    assert faults(name, "isolated", 400, seed=1) == []


@pytest.mark.parametrize("name", ["cube", "pod"])
def test_the_checker_finds_what_first_fit_shares(name: str) -> None:
    """A policy that promises nothing is found out, so the checker can fail."""
    assert faults(name, "first-fit", 100, seed=1)


@pytest.mark.parametrize("name", WIRINGS)
def test_the_engine_counts_the_links_that_the_checker_finds(name: str) -> None:
    """Whether jobs meet, as `LinkUse` says it for `topolane links`, agrees with the table. So do hops."""
    fabric, torus = made(name)
    number = {node: fabric.nodes_named(node)[0] for node in torus.router_of}
    for policy in ("first-fit", "random"):
        for jobs in itertools.islice(states(fabric, policy, 30, seed=2), 30):
            use = LinkUse(
                fabric, [(job, [number[node] for node in nodes], []) for job, nodes in jobs.items()]
            )
            links = {job: torus.links_of(nodes) for job, nodes in jobs.items()}
            met = {a for a, b in itertools.permutations(jobs, 2) if links[a] & links[b]}
            assert {job for job in jobs if use.meetings(job)} == met
    for a, b in itertools.product(list(number)[::7], repeat=2):
        assert fabric.hops(number[a], number[b]) == torus.hops(a, b)


@pytest.mark.parametrize("name", ["cube", "mesh"])
def test_a_prism_is_found_wherever_there_is_one(name: str) -> None:
    """On 4 x 4 x 4, the jobs that get a place are those for which some product of intervals has enough free nodes, and
    links of which none is used."""
    fabric, torus = made(name)
    node_of = {router: node for node, router in torus.router_of.items()}
    intervals = [
        [(start + step) % 4 for step in range(side)]
        for start in range(4)
        for side in (1, 2, 3, 4)
        if torus.wrap[0] or start + side <= 4
    ]
    prisms = [
        ({node_of[place] for place in itertools.product(*sides)})
        for sides in itertools.product(intervals, repeat=3)
    ]
    links = [torus.links_of(prism) for prism in prisms]
    refused = placed = 0
    for jobs in itertools.islice(states(fabric, "isolated", 60, seed=3), 10, 60, 8):
        busy = {node for nodes in jobs.values() for node in nodes}
        used = set().union(*(torus.links_of(nodes) for nodes in jobs.values()))
        most = max(
            (len(prism - busy) for prism, own in zip(prisms, links, strict=True) if not own & used), default=0
        )
        state = State(fabric)
        for job, nodes in jobs.items():
            state.hold([fabric.nodes_named(node)[0] for node in nodes], id=job)
        for wanted in range(2, fabric.nodes - len(busy) + 1):
            found = not isinstance(state.place("isolated", wanted), Refusal)
            assert found == (wanted <= most), (jobs, wanted)
            refused, placed = refused + (not found), placed + found
    assert refused > 20 < placed


if __name__ == "__main__":
    number = int(sys.argv[1])
    for wiring in WIRINGS:
        print(
            f"{wiring}: {number:,} states, {len(faults(wiring, 'isolated', number, 1))} with a shared link",
            flush=True,
        )
