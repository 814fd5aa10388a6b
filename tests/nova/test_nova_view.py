"""Server groups as the jobs of a view: their status and explanations, on small clouds. A whole Nova is in test_nova_commands.py."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from xml.dom import minidom

import pytest
from click.testing import CliRunner
from topolane._engine import InputError, Machine
from topolane.cli import nova_plan, nova_status
from topolane.cluster.status import NodeCounts
from topolane.cluster.view import ISOLATED, NONE, SHARED
from topolane.nova.cloud import Cloud, Server, ServerGroup
from topolane.nova.explain import explain, tree
from topolane.nova.hints import PlacementHint
from topolane.nova.status import status
from topolane.nova.topology import Topology
from topolane.nova.view import WITHOUT_GROUP, view

LEAVES = [(["site", pod, leaf], [f"{leaf}{i}" for i in range(3)]) for pod, leaf in ("pa", "pb", "qc", "qd")]
TOPOLOGY = Topology.of(Machine.of("small", LEAVES))
FLAVOR = {"vcpus": 1, "ram": 8192, "disk": 0, "ephemeral": 0, "swap": 0, "extra_specs": {}}
NOON = "2026-11-29T12:00:00Z"
REFUSED = "No valid host was found."


def server(name: str, host: str | None, **fields: object) -> Server:
    made = Server(
        name, name, host, "ERROR" if host is None else "ACTIVE", FLAVOR, {}, None, False, created=NOON
    )
    return dataclasses.replace(made, **fields)  # type: ignore[arg-type]


def group(name: str, hosts: Iterable[str | None], placement: str | None, **fields: object) -> ServerGroup:
    servers = [server(f"{name}.{at}", host, **fields) for at, host in enumerate(hosts)]
    return ServerGroup(f"id-{name}", name, "project", 1, servers, PlacementHint(placement))


def cloud(*groups: ServerGroup, closed: Iterable[str] = (), alone: Iterable[str] = ()) -> Cloud:
    occupied = frozenset([*alone, *(host for one in groups for host in one.hosts)])
    zones = dict.fromkeys(TOPOLOGY.node_of, "nova")
    return Cloud(TOPOLOGY, [], list(groups), zones, frozenset(closed), occupied)


def node(*hosts: str) -> tuple[int, ...]:
    return tuple(sorted(TOPOLOGY.node_of[host] for host in hosts))


def test_groups_are_jobs_and_their_servers_slots() -> None:
    """A group with a host runs, one without waits, one without servers is no job. Policy and use of links are what it asks for."""
    seen = view(
        cloud(
            group("one", ["a0", "b0"], "isolated"),
            group("two", ["a1"], None),
            group("late", [None, None], "compact", fault=REFUSED),
            group("empty", [], "compact"),
        )
    )
    one, two = seen.running
    assert (one.name, one.nodes, one.ranks, one.policy) == (
        "one",
        node("a0", "b0"),
        ("a0", "b0"),
        "isolated",
    )
    assert (one.link_use, one.size, one.slots, one.state) == (ISOLATED, 2, 2, "ACTIVE")
    assert (two.link_use, two.policy) == (SHARED, "stock")
    (late,) = seen.waiting
    assert (late.name, late.size, late.why, late.held) == ("late", 2, REFUSED, True)
    assert one.start == late.submit == 1795953600.0


def test_a_closed_host_with_a_server_is_busy_and_one_without_is_out_of_service() -> None:
    """So it is in all systems. Servers of no group hold their hosts, have no row and count as users of no links."""
    found = status(cloud(group("one", ["a0", "b0"], "compact"), closed=["a0", "d2"], alone=["c0", "d0"]), [])
    assert found.nodes == NodeCounts(idle=7, busy=4, out_of_service=1)
    assert [row.job for row in found.running] == ["one"]
    assert found.sharing is not None and found.sharing.shared == 0
    other = view(cloud(alone=["c0", "d0"])).running[0]
    assert (other.name, other.is_ours, other.link_use) == (WITHOUT_GROUP, False, NONE)


def test_hosts_of_a_migration_that_is_not_over_hold_links_and_are_no_slots() -> None:
    kept = group("one", ["a0"], "isolated", elsewhere=("b0",))
    found = status(cloud(kept, group("two", ["a1", "b1"], "isolated")), [])
    assert found.sharing is not None and found.sharing.isolated_sharing == ["one", "two"]
    one = next(row for row in found.running if row.job == "one")
    assert (one.nodes, one.hosts, one.may_meet) == (1, "a0", ["two"])
    said = explain(cloud(kept), kept, list)
    assert said.sentences[-1] == "Kept until a migration is over: b0 (one.0)."


def test_the_group_furthest_above_its_least_hops_is_first() -> None:
    found = status(cloud(group("near", ["a0", "a1"], "compact"), group("far", ["b0", "c0"], "compact")), [])
    assert [row.job for row in found.running] == [row.job for row in found.hops] == ["far", "near"]
    far, near = found.hops
    assert (far.hops > far.least_hops == 0, near.hops, far.leaves, near.leaves) == (True, 0, 2, 1)


def test_groups_of_one_name_are_called_by_their_id() -> None:
    """Neither is a group that has the id of another as its name."""
    first, second = group("same", ["a0"], None), group("same", ["a1"], None)
    second = dataclasses.replace(second, id="other")
    third = group("other", ["a2"], None)
    made = cloud(first, second, third)
    assert [job.name for job in view(made).running] == ["id-same", "other", "id-other"]
    assert made.group("other") is second and made.group("id-same") is first
    with pytest.raises(InputError, match="there are 2 server groups 'same'"):
        made.group("same")


def test_a_running_group_is_explained_by_its_links_and_whom_it_may_meet() -> None:
    one = group("one", ["a0", "b0"], "isolated")
    made = cloud(one, group("two", ["a1", "b1"], "compact"))
    said = explain(made, one, list)
    assert said.sentences == [
        said.sentences[0],
        "Its policy is isolated (topolane:placement as a hint or extra spec, or default_placement).",
        "Its nodes are in p (T2): it may use the uplinks of a, b.",
        "On those of a it may meet group two.",
        "On those of b it may meet group two.",
    ]
    assert said.sentences[0].startswith("Group one runs on a0,b0 since ")
    assert (said.home, said.level, said.may_meet) == ("p", 2, ["two"])
    assert tree(made, one).splitlines() == [
        "site: 2 of the group on 12 hosts",
        "  p: 2 of the group on 6 hosts",
        "    a: 1 of the group on 3 hosts",
        "      a0: one.0",
        "    b: 1 of the group on 3 hosts",
        "      b0: one.1",
    ]


def test_a_refused_group_is_explained_by_what_is_in_its_way() -> None:
    """Two hosts of each leaf of a pod are free, but an isolated group has the links between them. Once it ends there is a place."""
    wide = group("wide", [None] * 4, "isolated", fault=REFUSED)
    made = cloud(
        group("apart", ["a0", "b0"], "isolated"), group("rest", ["c0", "c1", "c2", "d0", "d1"], None), wide
    )
    free = [int(made.topology.machine.node_name(at)[0] in "ab") for at in range(12)]
    for host in ("a0", "b0"):
        free[TOPOLOGY.node_of[host]] = 0
    said = explain(made, wide, lambda: free)
    assert said.in_the_way is not None and not said.in_the_way.has_place
    assert [one.job for one in said.in_the_way.must_end] == ["apart"]
    assert f"Nova says: {REFUSED}" in said.sentences
    assert "Now 4 nodes have 4 free slots for its servers." in said.sentences
    assert any("group apart" in sentence for sentence in said.in_the_way.obstacles)


def test_a_group_that_fits_by_now_is_to_be_requested_again() -> None:
    late = group("late", [None] * 2, "isolated", fault=REFUSED)
    said = explain(cloud(late), late, lambda: [1] * 12)
    assert said.in_the_way is not None and said.in_the_way.has_place
    assert "By now isolated has a place for it: delete its servers and request them again." in said.sentences


def test_a_server_outside_the_topology_uses_all_links_above_the_others() -> None:
    """The filter counts so, and so does the explanation of a group that waits."""
    beyond = group("beyond", ["a0", "elsewhere"], "isolated")
    late = group("late", [None] * 4, "isolated")
    made = cloud(beyond, late)
    free = [int(made.topology.machine.node_name(at) in ("a1", "a2", "b0", "b1")) for at in range(12)]
    said = explain(made, late, lambda: free)
    assert said.in_the_way is not None and not said.in_the_way.has_place
    hosts = explain(made, beyond, list).sentences[-1]
    assert (
        hosts
        == "The topology lacks hosts of it, so it may use all links above the others: elsewhere (beyond.1)."
    )


@pytest.mark.parametrize("name", ["\x1b]0;title\x07\x1b[31mred", "line\nline", "\ud800", "n" * 65536])
def test_names_of_users_reach_no_terminal_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nova refuses such names today; its database may hold them. JSON has them whole, and the picture can be read."""
    made = cloud(
        dataclasses.replace(group("far", ["a0", "b0", "c0"], "compact"), name=name),
        group("late", [None], "compact"),
    )
    monkeypatch.setattr(nova_status, "connected", lambda *_: (None, made))
    monkeypatch.setattr(nova_plan, "connected", lambda *_: (None, made))
    monkeypatch.setattr("topolane.nova.cloud.off_tree", lambda *_: [])
    rules = SimpleNamespace(
        slots=lambda _: [1] * 12, weights=lambda _: None, notes=[f"group {name} has none"]
    )
    monkeypatch.setattr("topolane.nova.plan_rules.Rules", lambda *_: rules)
    picture = tmp_path / "tree.svg"
    for command, words in (
        (nova_status.status, ("--svg", str(picture))),
        (nova_status.explain, ("id-far", "--svg", str(picture))),
        (nova_plan.plan, ()),
    ):
        done = CliRunner().invoke(command, words)
        assert done.exit_code == 0, done.output
        assert all(letter.isprintable() for line in done.output.split("\n") for letter in line)
        minidom.parse(str(picture))
    found = json.loads(CliRunner().invoke(nova_status.status, ["--json"]).stdout)
    assert found["running"][0]["job"] == name
