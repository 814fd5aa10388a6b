"""The tables that opensm installs, by three of its engines, read back and followed."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from subnet import ask, needs_a_subnet, running, sweep
from tables_text import Text
from topolane import Machine, Network, Shape, Task
from topolane._engine import Routing

# 108 nodes, as much bandwidth at every level, parallel cables at the top.
MACHINE = """
name = "toy"
[[site]]
name = "core"
children = [6, 6, 3]
parents = [1, 6, 3]
cables = [1, 1, 2]
"""
NODES, LEAF, POD = 108, 6, 36
ENGINES = ("ftree", "minhop", "updn")

Dumps = dict[str, tuple[str, str, str]]


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Dumps:
    """What ibnetdiscover, opensm and dump_fts say of one subnet under each engine."""
    directory = tmp_path_factory.mktemp("lfts")
    (directory / "toy.toml").write_text(MACHINE)
    found = {}
    with running(directory / "toy.toml", directory) as environment:
        for engine in ENGINES:
            tables = sweep(environment, engine).read_text()
            net, tables_asked = (ask(environment, tool).stdout for tool in ("ibnetdiscover", "dump_fts"))
            found[engine] = (net, tables, tables_asked)
    return found


def read(net: str, tables: str) -> tuple[Machine, Routing]:
    machine = Machine.parse(net, "toy.ibnetdiscover")
    return machine, machine.tables(tables, net, "tables", "net")


def most_flows(machine: Machine, routing: Routing, shift: int) -> int:
    """Flows on the busiest channel when node i sends to node i + shift."""
    flows = np.zeros(routing.channels, dtype=int)
    for node in range(machine.nodes):
        flows[routing.path(node, (node + shift) % machine.nodes)] += 1
    return int(flows.max())


@needs_a_subnet
@pytest.mark.parametrize("engine", ENGINES)
def test_a_way_is_a_walk_over_the_text(engine: str, dumps: Dumps) -> None:
    net, tables, asked = dumps[engine]
    machine, routing = read(net, tables)
    _, the_same = read(net, asked)
    text, names = Text(net, tables), machine.link_names()
    hosts = {name: device for device, name in text.name.items() if device.startswith("H-")}
    assert machine.nodes == len(hosts) == NODES

    def ends(channel: int) -> list[str]:
        lower, _, upper, _, _ = names[channel // 2]
        return [lower, upper] if channel % 2 == 0 else [upper, lower]

    channel_at: dict[tuple[str, int], int] = {}
    for a in range(NODES):
        for b in range(NODES):
            path = routing.path(a, b)
            assert the_same.path(a, b) == path
            walk = text.walk(hosts[machine.node_name(a)], hosts[machine.node_name(b)]) if a != b else []
            assert [ends(c) for c in path] == [
                [text.name[device], text.name[text.far[device, port]]] for device, port in walk
            ]
            for step, channel in zip(walk, path, strict=True):
                assert channel_at.setdefault(step, channel) == channel
    # Every port a cable and direction of its own, parallel cables included.
    assert len(set(channel_at.values())) == len(channel_at)


@needs_a_subnet
def test_ftree_keeps_shifts_apart(dumps: Dumps) -> None:
    # Zahavi 2010: on a whole tree every shift is free of contention, one flow on a link. Rules
    # that count ways without regard to the order of nodes lack that for shifts across pods.
    shifts = (1, LEAF, POD, NODES // 2)
    most = {engine: [most_flows(*read(*dumps[engine][:2]), shift) for shift in shifts] for engine in ENGINES}
    assert most["ftree"] == [1, 1, 1, 1]
    for engine in ("minhop", "updn"):
        assert max(most[engine]) > 1


def test_a_run_follows_the_tables(dumps: Dumps, tmp_path: Path) -> None:
    """Jobs drawn at random over the nodes slow each other down under each engine's tables; jobs that
    share no group's uplinks do not, whichever way the tables lead."""
    for engine, (net, tables, _) in dumps.items():
        (tmp_path / "toy.ibnetdiscover").write_text(net)
        (tmp_path / "lfts.dump").write_text(tables)
        network = Network(
            routing=str(tmp_path / "lfts.dump"), communication=1.0, patterns=("uniform", "ring")
        )
        task = Task(str(tmp_path / "toy.ibnetdiscover"), "cab-aug", policy="random", network=network)
        task = dataclasses.replace(task, shape=Shape(limit=300, squeeze=0.2))
        slowed = {
            policy: dataclasses.replace(task, policy=policy).run().summary["contention"]["slowed"]
            for policy in ("random", "isolated")
        }
        assert slowed["random"] > 0, engine
        assert slowed["isolated"] == 0, engine
