"""topolane-scheduler on a dragonfly, a torus and a HyperX, on a real API server. What groups may use is computed from the cables in the
machine file, without the engine (tests/wirings).
"""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from closure import Cables, shared_links
from control_plane import NODES, ControlPlane, missing, name
from hyperx_closure import HyperX
from topolane import sources
from torus_closure import Torus
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

PRESETS = {
    "slingshot": f"slingshot(nodes={NODES}, groups=4, switches=8, cables=2)",
    "torus": "torus(size=4x4x2, nodes=2)",
    "hyperx": "hyperx(size=8x4, nodes=2)",
}
"""Two nodes on each switch."""
MACHINES = {
    name: re.sub(
        rf"{name}\[(\d+)-(\d+)\]",
        lambda found: f"n[{int(found[1]) - 1:02}-{int(found[2]) - 1:02}]",
        sources.machine(preset).to("toml"),
    )
    for name, preset in PRESETS.items()
}
CHECKERS = {"slingshot": Cables, "torus": Torus, "hyperx": HyperX}
on_a_dragonfly = pytest.mark.parametrize("wiring", ["slingshot"], indirect=True)


@pytest.fixture(scope="module", params=PRESETS)
def wiring(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def file(wiring: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("machine") / "machine.toml"
    file.write_text(MACHINES[wiring])
    return file


@pytest.fixture(scope="module")
def wired(plane: ControlPlane, file: Path) -> ControlPlane:
    restart(plane, file)
    return plane


def restart(plane: ControlPlane, file: Path) -> None:
    plane.kill("topolane-scheduler")
    plane.start_scheduler(machineFile=str(file), groupTimeoutSeconds=5)


def look(plane: ControlPlane, wiring: str, running: dict[str, str]) -> None:
    """No group uses a link of an isolated group, or one between groups of the machine of a group that is isolated there."""
    checker, groups = CHECKERS[wiring](MACHINES[wiring]), list(running)
    placed = {number: plane.nodes_of(group) for number, group in enumerate(groups)}
    for shared in shared_links(checker.links_of, [placed]):
        for link, users in shared.items():
            leads_out = isinstance(checker, Cables) and checker.leads_to_another_group(link)
            closed = {"isolated"} | ({"isolated-global"} if leads_out else set())
            policies = {running[groups[number]] for number in users}
            assert not policies & closed, (link, {groups[number]: placed[number] for number in users})


def test_promised_links_are_kept_apart_also_over_kill_9(
    wired: ControlPlane, empty: ControlPlane, file: Path, wiring: str
) -> None:
    """Groups of all promises come and go; a scheduler that is killed finds again what the groups hold."""
    draw, running = random.Random(20261130), dict[str, str]()
    for step in range(24):
        if len(running) > 3 or (running and draw.random() < 0.3):
            gone = draw.choice(list(running))
            del running[gone]
            empty.remove(gone)
            until(lambda gone=gone: not empty.pods(gone), "its pods are gone")
        group, size = name(), draw.choice((2, 3, 5, 9, 14))
        policy = draw.choice(("isolated", "isolated-global" if wiring == "slingshot" else "isolated"))
        empty.submit(group, size, policy=policy)
        empty.has_looked()
        nodes = empty.nodes_of(group)
        if all(nodes):
            running[group] = policy
            notes = json.loads(empty.pods(group)[0]["metadata"]["annotations"]["topolane.io/placement"])
            assert notes["link_use"] == policy
        else:
            assert not any(nodes)
            empty.remove(group)
            until(lambda group=group: not empty.pods(group), "its pods are gone")
        if step == 12:
            restart(empty, file)
        look(empty, wiring, running)
    assert len(running) > 1


@on_a_dragonfly
def test_a_group_waits_for_the_cables_between_two_groups(wired: ControlPlane, empty: ControlPlane) -> None:
    """Two groups of pods that must each lie in the same two groups of the machine: nodes are idle, the cables are not."""
    first, second = name(), name()
    for pick, nodes in ((first, ("n00", "n16")), (second, ("n02", "n18"))):
        for node in nodes:
            empty.patch(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"pick": pick}}})
    empty.submit(first, 2, policy="isolated-global", nodeSelector={"pick": first})
    empty.placed(first, 2)
    empty.submit(second, 2, policy="isolated-global", nodeSelector={"pick": second})
    empty.waits_saying(second, "would share links")
    empty.remove(first)
    empty.placed(second, 2)


@on_a_dragonfly
def test_a_policy_for_trees_says_so(wired: ControlPlane, empty: ControlPlane) -> None:
    group = name()
    empty.submit(group, 4, policy="dedicated")
    empty.waits_saying(group, "writes no routes for a dragonfly")
