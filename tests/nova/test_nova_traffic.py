"""Groups whose traffic is known: who talks to whom decides which server goes where."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cloud_process import HOSTS, CloudProcess
from hypothesis import given, settings
from hypothesis import strategies as st
from placements import COMPACT, ours, tree, write
from topolane._engine import Machine, Traffic
from topolane.nova.group_placement import GroupPlacement
from topolane.nova.topology import Topology
from topolane.nova.traffic import GroupRanks

LEAVES = [HOSTS[:4], HOSTS[4:8]]
TREE = tree(LEAVES, leaves_in_pod=1)
PAIRS = "from,to,bytes\n" + "".join(f"{rank},{rank + 4},1000000\n" for rank in range(4))
"""Of eight ranks each of the first four talks to one of the others; no other ranks talk."""


def hop_bytes(machine: Machine, traffic: Traffic, nodes: list[int]) -> float:
    sender, receiver, size, _ = traffic.arrays()
    ends = zip(sender.tolist(), receiver.tolist(), size.tolist())
    return sum(each * (machine.hops(nodes[a], nodes[b]) or 0) for a, b, each in ends if a != b)


def test_servers_that_talk_share_a_leaf(cloud: CloudProcess, tmp_path: Path) -> None:
    """Eight servers fill two leaves of four. In the order of creation the pairs would be parted; by the profile
    the r-th and the (r + 4)-th are on one leaf. Without a profile they are not."""
    write(tmp_path / "topology.conf", TREE)
    (tmp_path / "pairs.csv").write_text(PAIRS)
    cloud.schedule_by(ours(machine_file=str(tmp_path / "topology.conf"), traffic_directory=str(tmp_path)))

    def pairs_on_a_leaf(name: str, profile: str) -> int:
        servers = cloud.boot(8, cloud.group(name), hints=COMPACT | {"topolane:traffic": profile})
        of_rank = {cloud.rank(server): TREE[host][0] for server, host in servers.items()}
        together = sum(of_rank[rank] == of_rank[rank + 4] for rank in range(4))
        cloud.delete(list(servers))
        return together

    assert pairs_on_a_leaf("with", "pairs") == 4
    assert pairs_on_a_leaf("without", "absent") == 0
    assert any(
        "no traffic profile absent" in line for line in cloud.log("as if all its servers talked alike")
    )


@settings(max_examples=100, deadline=None)
@given(data=st.data(), ranks=st.integers(2, 9), seed=st.integers(0, 99))
def test_a_newcomer_goes_where_its_bytes_travel_least(data: st.DataObject, ranks: int, seed: int) -> None:
    """With all others in place, the node of least cost is one of fewest hop-bytes among the free ones."""
    leaves = [
        (["site", f"pod{leaf // 2}", f"leaf{leaf}"], [f"h{leaf}.{i}" for i in range(3)]) for leaf in range(4)
    ]
    machine = Machine.of("toy", leaves)
    traffic = Traffic.pattern("unstructured3d", ranks, seed)
    nodes = data.draw(st.permutations(range(machine.nodes)))[: ranks - 1]
    group = GroupRanks(machine, traffic, dict(enumerate(nodes)), ranks - 1)
    placing = GroupPlacement(Topology.of(machine), "hop-bytes-exact", False, list(nodes), 1, group)
    slots = np.array([node not in nodes for node in range(machine.nodes)], dtype=np.uint32)
    costs = placing.costs(slots).costs
    assert costs is not None and (np.isfinite(costs) == (slots > 0)).all()
    free = np.flatnonzero(slots).tolist()
    by_hand = {node: hop_bytes(machine, traffic, [*nodes, node]) for node in free}
    assert by_hand[int(np.argmin(costs))] == min(by_hand.values())


def test_one_after_another_the_ranks_go_where_the_map_has_them() -> None:
    """Sixteen ranks on four leaves of four, of which every fourth talk to each other: each in turn goes to its best
    node, and no byte leaves a leaf."""
    machine = Machine.of(
        "toy", [(["site", f"leaf{leaf}"], [f"h{leaf}.{i}" for i in range(4)]) for leaf in range(4)]
    )
    ends = [(a, b) for a in range(16) for b in range(16) if a != b and a % 4 == b % 4]
    traffic = Traffic.of(16, [a for a, _ in ends], [b for _, b in ends], [1e6] * len(ends))
    placing = GroupPlacement(
        Topology.of(machine), "hop-bytes-exact", False, [], 16, GroupRanks(machine, traffic, {}, 0)
    )
    slots = np.ones(16, dtype=np.uint32)
    nodes: list[int] = []
    for _ in range(16):
        costs = placing.costs(slots).costs
        assert costs is not None
        nodes.append(int(np.argmin(costs)))
        slots[nodes[-1]] = 0
        placing.give(machine.node_name(nodes[-1]))
    assert sorted(nodes) == list(range(16))
    assert hop_bytes(machine, traffic, nodes) == 0 < hop_bytes(machine, traffic, list(range(16)))
