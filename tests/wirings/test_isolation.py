"""No two jobs share a link in random states of small dragonflies, by a checker that knows only the cables.

`python tests/wirings/test_isolation.py STATES [WIRING...]` checks that many states of each wiring and policy.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator

import pytest
from closure import Cables, Held, Link, shared_links
from topolane._engine import Machine, Refusal, State
from topolane.sources import machine

MACHINES = {
    "all-to-all": "slingshot(nodes=64, groups=4, switches=4, cables=2)",
    "one-cable": "slingshot(nodes=60, groups=5, switches=6, cables=1)",
    "few-nodes": "slingshot(nodes=40, groups=5, switches=8, cables=3)",
    "all-gateways": "slingshot(nodes=36, groups=3, switches=3, cables=3)",
    "plus-one-cable": "dragonfly+(nodes=48, groups=4, leaves=3, spines=3, cables=1)",
    "plus-all-gateways": "dragonfly+(nodes=36, groups=3, leaves=4, spines=2, cables=2)",
    "plus-large-leaves": "dragonfly+(nodes=50, groups=5, leaves=2, spines=4, cables=2)",
}
"""By name: presets. Others are made below, with rows and columns, and with cables missing."""


def rows_and_columns(groups: int, rows: int, columns: int, nodes: int, width: int) -> str:
    """A machine as Aries: cables along rows and columns, and from `width` switches of each group to each other group."""
    size = rows * columns
    cables = []
    for group in range(groups):
        at = [group * size + place for place in range(size)]
        for a, b in itertools.combinations(range(size), 2):
            if a // columns == b // columns or a % columns == b % columns:
                cables.append([at[a], at[b], 3 if a % columns == b % columns else 1])
        for other in range(group + 1, groups):
            for cable in range(width):
                here, there = ((rank * width + cable) % size for rank in (other - 1, group))
                cables.append([at[here], other * size + there, 2])
    return text_of(groups, size, nodes, cables)


def with_missing(groups: int, size: int, nodes: int, seed: int) -> str:
    """A machine of groups joined nearly all to all: some cables are missing, so that some ways have two or three links."""
    draw = random.Random(seed)
    cables = []
    for group in range(groups):
        for a, b in itertools.combinations(range(size), 2):
            if b == a + 1 or draw.random() < 0.6:
                cables.append([group * size + a, group * size + b, 1])
        for other in range(group + 1, groups):
            for _ in range(draw.randint(1, 3)):
                ends = [group * size + draw.randrange(size), other * size + draw.randrange(size)]
                if [*ends, 1] not in cables:
                    cables.append([*ends, 1])
    return text_of(groups, size, nodes, cables)


def text_of(groups: int, size: int, nodes: int, cables: list[list[int]]) -> str:
    lines = ['name = "m"', "[[site]]", 'name = "all"']
    number = itertools.count()
    for group in range(groups):
        for place in range(size):
            own = ",".join(f"n{next(number)}" for _ in range(nodes))
            lines += ["[[site.switch]]", f'name = "s{group}x{place}"', f'nodes = "{own}"']
        names = ",".join(f"s{group}x{place}" for place in range(size))
        lines += ["[[site.switch]]", f'name = "g{group}"', f'switches = "{names}"']
    below = ",".join(f"g{group}" for group in range(groups))
    lines += ["[[site.switch]]", 'name = "all"', f'switches = "{below}"', "[dragonfly]"]
    switches = [",".join(f"s{group}x{place}" for place in range(size)) for group in range(groups)]
    lines += [f"groups = {switches}", "[[dragonfly.cables]]", "bandwidth = 1e9", f"between = {cables}"]
    return "\n".join(lines).replace("'", '"')


TEXTS = {
    "rows-and-columns": rows_and_columns(3, 3, 4, 2, 4),
    "rows-and-columns-few-gateways": rows_and_columns(4, 2, 4, 2, 1),
    "missing-cables": with_missing(4, 6, 2, 1),
    "more-missing-cables": with_missing(3, 8, 1, 2),
}
WIRINGS = [*MACHINES, *TEXTS]
POLICIES = ("isolated", "isolated-global", "dedicated")


def made(name: str) -> tuple[Machine, Cables]:
    """The machine, and its cables as its file has them."""
    if name in TEXTS:
        text = TEXTS[name]
        return Machine.parse(text, "m.toml"), Cables(text)
    fabric = machine(MACHINES[name])
    return fabric, Cables(fabric.to("toml"))


def states(fabric: Machine, policy: str, count: int, seed: int) -> Iterator[dict[int, list[str]]]:
    """The jobs of random states: jobs of mixed sizes arrive and end at random."""
    draw, state = random.Random(seed), State(fabric)
    ends = [(below, above) for below, _, above, _, _ in fabric.link_names()]
    own: dict[int, list[Link]] = {}
    names = [fabric.hostlist([node]) for node in range(fabric.nodes)]
    running: dict[int, list[int]] = {}
    for job in range(1, count + 1):
        wanted = min(draw.choice([1, 2, 3, 4, 6, 8, 12, 16, 24, 32]), fabric.nodes)
        answer = state.place(policy, wanted, id=job)
        if not isinstance(answer, Refusal):
            running[job] = answer.nodes
            own[job] = [ends[link] for link in answer.links]
            state.hold(answer.nodes, id=job, links=answer.links)
        while running and (isinstance(answer, Refusal) or draw.random() < 0.3):
            ended = draw.choice(list(running))
            state.release(ended)
            del running[ended]
            if draw.random() < 0.5:
                break
        yield {job: Held((names[node] for node in nodes), own[job]) for job, nodes in running.items()}


def faults(name: str, policy: str, count: int, seed: int) -> list[dict[Link, list[int]]]:
    fabric, cables = made(name)
    found = [
        {
            link: jobs
            for link, jobs in shared.items()
            if policy != "isolated-global" or cables.leads_to_another_group(link)
        }
        for shared in shared_links(cables.links_of, states(fabric, policy, count, seed))
    ]
    return [shared for shared in found if shared]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", WIRINGS)
def test_no_two_jobs_share_a_link(name: str, policy: str) -> None:
    assert faults(name, policy, 400, seed=1) == []


@pytest.mark.parametrize("name", WIRINGS)
def test_jobs_own_cables_between_each_two_of_their_groups(name: str) -> None:
    """Under `dedicated`. Where there is more than one cable, some job leaves one to others."""
    fabric, cables = made(name)
    leaves_some = False
    for jobs in states(fabric, "dedicated", 200, seed=4):
        for nodes in jobs.values():
            groups = {cables.group_of[cables.switch_of[node]] for node in nodes}
            for pair in itertools.permutations(groups, 2):
                assert cables.between[pair] & nodes.own
                leaves_some |= not cables.between[pair] <= nodes.own
    assert leaves_some or all(len(links) == 1 for links in cables.between.values())


def test_the_checker_finds_what_first_fit_shares() -> None:
    """A policy that promises nothing is found out, so the checker can fail."""
    assert faults("all-to-all", "first-fit", 100, seed=1)


@pytest.mark.parametrize("name", WIRINGS)
def test_the_engine_counts_the_links_that_the_checker_finds(name: str) -> None:
    """Whether jobs meet, as `LinkUse` says it for `topolane links`, agrees with the cables."""
    from topolane._engine import LinkUse

    fabric, cables = made(name)
    for jobs in itertools.islice(states(fabric, "first-fit", 60, seed=2), 60):
        rows = [(job, [fabric.nodes_named(node)[0] for node in nodes], []) for job, nodes in jobs.items()]
        use = LinkUse(fabric, rows)
        met = {
            job
            for shared in shared_links(cables.links_of, [jobs])
            for users in shared.values()
            for job in users
        }
        assert {job for job in jobs if use.meetings(job)} == met
        assert (use.shared > 0) == bool(met)


def placeable(fabric: Machine, cables: Cables, jobs: dict[int, list[str]], wanted: int) -> bool:
    """Whether any nodes isolate a job next to these: all choices of free nodes are tried, up to nodes of one switch."""
    busy = {node for nodes in jobs.values() for node in nodes}
    used = set().union(*(cables.links_of(nodes) for nodes in jobs.values()))
    room: dict[str, list[str]] = {}
    for node, switch in cables.switch_of.items():
        if node not in busy:
            room.setdefault(switch, []).append(node)
    for size in range(1, len(room) + 1):
        for chosen in itertools.combinations(room, size):
            nodes = [room[switch][0] for switch in chosen]
            enough = sum(len(room[switch]) for switch in chosen) >= wanted >= size
            if enough and not cables.links_of(nodes) & used:
                return True
    return False


TINY_PLUS = {
    "tiny-plus": "dragonfly+(nodes=12, groups=3, leaves=2, spines=3, cables=1)",
    "tiny-plus-all-gateways": "dragonfly+(nodes=18, groups=3, leaves=3, spines=2, cables=2)",
}


@pytest.mark.parametrize("policy", ["isolated", "random"])
@pytest.mark.parametrize("name", ["tiny", "tiny-rows", "tiny-missing", *TINY_PLUS])
def test_a_place_is_found_wherever_one_exists(name: str, policy: str) -> None:
    """On tiny machines an exhaustive search over all sets of switches finds the same jobs placeable, next to isolated jobs
    and next to others."""
    triangles = [[3 * group + a, 3 * group + b, 1] for group in range(3) for a, b in ((0, 1), (0, 2), (1, 2))]
    texts = {
        "tiny": text_of(3, 3, 2, [*triangles, [0, 3, 1], [1, 6, 1], [4, 7, 1]]),
        "tiny-rows": rows_and_columns(2, 2, 2, 2, 2),
        "tiny-missing": with_missing(2, 5, 2, 3),
        **{name: machine(preset).to("toml") for name, preset in TINY_PLUS.items()},
    }
    fabric, cables = Machine.parse(texts[name], "m.toml"), Cables(texts[name])
    tried = placed = 0
    for jobs in states(fabric, policy, 150, seed=3):
        state = State(fabric)
        for job, nodes in jobs.items():
            state.hold([fabric.nodes_named(node)[0] for node in nodes], id=job)
        for wanted in (2, 3, 5, 8):
            free = fabric.nodes - sum(map(len, jobs.values()))
            if wanted <= free:
                found = not isinstance(state.place("isolated", wanted), Refusal)
                assert found == placeable(fabric, cables, jobs, wanted), (jobs, wanted)
                tried, placed = tried + 1, placed + found
    assert tried > 100 and placed > 0
    assert (name, policy) == ("tiny", "isolated") or tried > placed, "some are refused for links"


@pytest.mark.parametrize("name", [name for name in MACHINES if name.startswith("plus")])
def test_a_dragonfly_plus_has_routes_over_spines_alone(name: str) -> None:
    """Shpiner et al. 2017: leaf, spine, leaf in a group; between groups leaf, spine, spine, leaf over the cables that join both."""
    fabric, cables = made(name)
    leaves = sorted({*cables.switch_of.values()})
    nodes = {leaf: node for node, leaf in cables.switch_of.items()}
    spines = {switch for switch in cables.group_of if switch not in leaves}
    assert all((here in spines) != (there in spines) for here in cables.near for there in cables.near[here])
    for here, there in itertools.permutations(leaves, 2):
        groups = cables.group_of[here], cables.group_of[there]
        over = {(spine, spine) for spine in spines if cables.group_of[spine] == groups[0] == groups[1]}
        over |= cables.between[groups]
        assert over and {switch for link in over for switch in link} <= spines
        routes = {link for a, b in over for link in ((here, a), (a, b), (b, there)) if link[0] != link[1]}
        back = {(b, a) for a, b in routes}
        assert cables.links_of([nodes[here], nodes[there]]) == routes | back
        numbers = [fabric.nodes_named(nodes[leaf])[0] for leaf in (here, there)]
        assert fabric.hops(*numbers) == (2 if groups[0] == groups[1] else 3)


if __name__ == "__main__":
    number, *names = int(sys.argv[1]), *sys.argv[2:]
    for wiring, rule in itertools.product(names or WIRINGS, POLICIES):
        print(
            f"{wiring}, {rule}: {number:,} states, {len(faults(wiring, rule, number, 1))} with a shared link",
            flush=True,
        )
