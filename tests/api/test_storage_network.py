"""What jobs do on another network of their machine, against a computation of its own."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import topolane
from topolane import _engine

Link = tuple[int, int, int, int, int, str]
"""Level, group, switch, parent, cable, direction."""


class Tree:
    """A whole PGFT and its routes by d-mod-k, as Zahavi (2010) has them."""

    def __init__(self, draw: random.Random) -> None:
        self.children = [draw.randint(2, 5), draw.randint(2, 3), draw.randint(1, 3)]
        self.parents = [1, draw.randint(1, 3), draw.randint(1, 2)]
        self.cables = [1, draw.randint(1, 2), draw.randint(1, 2)]
        self.bandwidth = [draw.choice([1e9, 4e9]), draw.choice([1e9, 2e9, 4e9]), draw.choice([1e9, 3e9])]
        self.hosts = self.children[0] * self.children[1] * self.children[2]

    def group(self, level: int, host: int) -> int:
        for size in self.children[:level]:
            host //= size
        return host

    def route(self, source: int, target: int) -> list[Link]:
        up: list[Link] = []
        down: list[Link] = []
        switch, width = 0, 1
        for level in range(3):
            if self.group(level, source) == self.group(level, target):
                break
            parents, cables = self.parents[level], self.cables[level]
            port = target // width % (parents * cables)
            parent, cable = port % parents, port // parents
            up.append((level, self.group(level, source), switch, parent, cable, "up"))
            down.append((level, self.group(level, target), switch, parent, cable, "down"))
            switch, width = switch * parents + parent, width * parents
        return up + down[::-1]

    def toml(self, names: list[str]) -> str:
        return (
            f'name = "st"\n[[site]]\nname = "core"\nchildren = {self.children}\nparents = {self.parents}\n'
            f'cables = {self.cables}\nbandwidth = {self.bandwidth}\nnodes = "{",".join(names)}"\n'
        )


COMPUTE = 'name = "c"\n[[site]]\nname = "core"\nchildren = [2, 3, 2]\nparents = [1, 2, 2]\n'


def jobs(draw: random.Random, nodes: int, path: Path) -> _engine.Workload:
    rows = [f"{i},{draw.randint(0, 500)},{draw.randint(1, 400)},{draw.randint(1, nodes)}" for i in range(25)]
    path.write_text("\n".join(["id,submit,run,nodes", *rows, ""]))
    return topolane.workload(path, nodes)


def outcome_of(machine: _engine.Machine, workload: _engine.Workload) -> _engine.Outcome:
    return _engine.simulate(workload, machine, topolane.Settings())


@pytest.mark.parametrize("seed", range(40))
def test_links_to_servers_are_those_of_routes_from_each_node_to_each_server(tmp_path, seed):
    """A job uses the links of the routes between each of its nodes and each server, both ways.

    It shares those between its nodes and the switches where the routes turn with the jobs that use them while it runs. What its
    links must carry, over their bandwidth, is largest at its bottleneck: its bandwidth alone is that of its ends' links over that.
    """
    draw = random.Random(seed)
    tree = Tree(draw)
    # Some of the nodes c1 to c12, and servers, at random places; at least one of each.
    others = [f"c{number}" for number in range(2, 13)] + [f"oss{number}" for number in range(2, tree.hosts)]
    names = ["c1", "oss1", *draw.sample(others, tree.hosts - 2)]
    draw.shuffle(names)
    hosts = {name: number for number, name in enumerate(names)}
    servers = [name for name in names if name.startswith("oss")][: draw.randint(1, 4)]
    tmp_path.joinpath("st.toml").write_text(tree.toml(names))
    entry = f'[[network]]\nname = "st"\nfile = "st.toml"\nservers = "{",".join(servers)}"\n'
    tmp_path.joinpath("c.toml").write_text(COMPUTE + entry)
    machine = topolane.machine(tmp_path / "c.toml")
    outcome = outcome_of(machine, jobs(draw, machine.nodes, tmp_path / "log.csv"))
    (network,) = machine.networks
    shared, alone, mean = outcome.on_network(machine, network)

    table = topolane.run.Run._frame(outcome.tables()["jobs"])
    times = list(zip(table["starting_time"].to_list(), table["finish_time"].to_list()))
    used: list[set[Link]] = []
    shares: list[float | None] = []
    nodes = [[machine.node_name(node) for node in placed.tolist()] for placed in outcome.placements()]
    for held in nodes:
        below: set[Link] = set()
        load: dict[Link, float] = {}
        for client in (hosts[name] for name in held if name in hosts):
            for server in (hosts[name] for name in servers):
                there, back = tree.route(client, server), tree.route(server, client)
                below |= {*there[: len(there) // 2], *back[len(back) // 2 :]}
                for link in there + back:
                    load[link] = load.get(link, 0) + 1 / tree.bandwidth[link[0]]
        used.append(below)
        ends = max((time for link, time in load.items() if link[0] == 0), default=0)
        shares.append(ends / max(load.values()) if load else None)
    expected = []
    for job, (start, end) in enumerate(times):
        overlapping = [k for k, (a, b) in enumerate(times) if k != job and a < end and start < b]
        expected.append(sum(any(link in used[k] for k in overlapping) for link in used[job]))
    assert shared == expected
    assert alone == [None if share is None else pytest.approx(share) for share in shares]
    weight = [len(held) * (end - start) for held, (start, end) in zip(nodes, times)]
    counted = [(share, w) for share, w in zip(shares, weight) if share is not None]
    if counted:
        assert mean == pytest.approx(sum(s * w for s, w in counted) / sum(w for _, w in counted))


def test_without_servers_jobs_meet_as_on_a_machine_of_that_tree(tmp_path):
    """On a network of the same tree, jobs that send between their own nodes share the links that they share on the machine."""
    tmp_path.joinpath("st.toml").write_text(COMPUTE)
    tmp_path.joinpath("c.toml").write_text(COMPUTE + '[[network]]\nname = "st"\nfile = "st.toml"\n')
    machine = topolane.machine(tmp_path / "c.toml")
    outcome = outcome_of(machine, jobs(random.Random(1), machine.nodes, tmp_path / "log.csv"))
    shared, alone, mean = outcome.on_network(machine, machine.networks[0])
    first = topolane.run.Run._frame(outcome.tables()["jobs"])["links_shared"].to_list()
    assert shared == first and any(first)
    assert (set(alone), mean) == ({None}, None)


def test_policies_place_by_the_first_network_alone(tmp_path):
    """Another network changes no placement and no time."""
    tmp_path.joinpath("c.toml").write_text(COMPUTE)
    tmp_path.joinpath("both.toml").write_text(COMPUTE + '[[network]]\nname = "st"\nfile = "c.toml"\n')
    alone, both = (topolane.machine(tmp_path / name) for name in ("c.toml", "both.toml"))
    log = jobs(random.Random(2), 12, tmp_path / "log.csv")
    runs = [topolane.simulate(log, machine, policy="isolated") for machine in (alone, both)]
    assert runs[0].jobs.equals(runs[1].jobs)
    assert runs[1].summary["networks"][0]["name"] == "st" and "networks" not in runs[0].summary
