"""Parts of a group that lie together, and machines of a file, of labels, and of both, on a real control plane."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from control_plane import CHASSIS, LABELS, NODES, RACK, SMALL, ControlPlane, missing, name
from waiting import until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))
Start = Callable[..., ControlPlane]
LAYERS = "kueue.x-k8s.io/podset-slice-required-topology-constraints"


@pytest.fixture
def start(empty: ControlPlane) -> Iterator[Start]:
    """Starts the scheduler with other args; afterwards it runs with those of the module again."""
    running = ["topolane-scheduler"]

    def started(log: str, **args: object) -> ControlPlane:
        empty.kill(running.pop())
        running.append(log)
        empty.start_scheduler(log, groupTimeoutSeconds=5, **args)
        return empty

    yield started
    empty.kill(running.pop())
    empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)


def switches(*nodes: str) -> str:
    """A topology.conf of a switch for each list of nodes, and one above them."""
    leaves = [f"SwitchName=s{number} Nodes={names}" for number, names in enumerate(nodes)]
    return "\n".join([*leaves, f"SwitchName=top Switches=s[0-{len(nodes) - 1}]", ""])


def racks(size: int, last: int = 64) -> str:
    """A topology.conf of switches of `size` nodes each, up to node `last`."""
    return switches(*(f"n[{first:02}-{min(last, first + size) - 1:02}]" for first in range(0, last, size)))


def parts(nodes: list[str], segment: int, size: int) -> bool:
    """Whether each part of a group lies in one group of nodes of a size."""
    chunks = [nodes[start : start + segment] for start in range(0, len(nodes), segment)]
    return all(len({int(node[1:]) // size for node in chunk}) == 1 for chunk in chunks)


def test_segments_lie_in_one_chassis_each(start: Start) -> None:
    """16 pods in parts of 4, by our annotation and by Kueue's, under the policies that keep them. Each chassis has six nodes left, so
    without parts the group would fill two of them.
    """
    plane = start("segments", topologyLabels=SMALL)
    slices = {
        "kueue.x-k8s.io/podset-slice-required-topology": "topo/chassis",
        "kueue.x-k8s.io/podset-slice-size": "4",
    }
    layer = {LAYERS: '[{"topology": "topo/chassis", "size": 4}]'}
    for chassis in range(NODES // CHASSIS):
        blocker = name()
        plane.submit(blocker, 2, policy="first-fit", nodeSelector={"topo/chassis": f"c{chassis}"})
        plane.placed(blocker, 2)
    for notes in ({"topolane.io/segment": "4"}, slices, layer):
        for policy in ("", "segments", "kueue-tas"):
            group = name()
            plane.submit(group, 16, policy=policy, notes=notes)
            nodes = plane.placed(group, 16)
            assert parts(nodes, 4, CHASSIS) and len(set(nodes)) == 16, (policy, nodes)
            plane.remove(group)
            until(lambda group=group: not plane.pods(group), "it is gone")


@pytest.mark.parametrize(
    ("notes", "said"),
    [
        ({"topolane.io/segment": "9"}, 'is a number from 1 to the size of the group, 8, not "9"'),
        ({"topolane.io/segment": "4", "topolane.io/policy": "jigsaw"}, "policy jigsaw keeps no segments"),
        ({"kueue.x-k8s.io/podset-slice-size": "4"}, "needs kueue.x-k8s.io/podset-slice-required-topology"),
        (
            {
                "kueue.x-k8s.io/podset-slice-size": "4",
                "kueue.x-k8s.io/podset-slice-required-topology": "topo/block",
            },
            "in the lowest level above nodes only: name kueue-tas",
        ),
        (
            {
                "topolane.io/segment": "4",
                "kueue.x-k8s.io/podset-slice-required-topology": "topo/rack",
            },
            "contradict each other",
        ),
        ({LAYERS: "rack"}, 'is no list of topology and size: "rack"'),
        ({LAYERS: '[{"topology": "topo/rack", "sizes": [4, 4]}]'}, "needs a topology and a size"),
        (
            {LAYERS: '[{"topology": "topo/rack", "size": 8}, {"topology": "topo/chassis", "size": "4"}]'},
            "has 2 layers; this scheduler keeps slices of one",
        ),
        (
            {LAYERS: '[{"topology": "topo/rack", "size": 4}]', "topolane.io/segment": "4"},
            "contradict each other",
        ),
    ],
)
def test_bad_segments_are_an_event(empty: ControlPlane, notes: dict[str, str], said: str) -> None:
    group = name()
    empty.submit(group, 8, notes=notes)
    empty.waits_saying(group, said)


def test_annotations_of_kueue_that_are_not_obeyed_are_an_event(empty: ControlPlane) -> None:
    """The group is placed all the same. One that a later Kueue may have, and one that joins podsets."""
    group = name()
    notes = {"kueue.x-k8s.io/podset-group-name": "both", "kueue.x-k8s.io/podset-new": "1"}
    empty.submit(group, 4, notes=notes)
    empty.placed(group, 4)
    said = 'is placed without regard to "kueue.x-k8s.io/podset-group-name, kueue.x-k8s.io/podset-new"'
    until(lambda: said in empty.events(group), "an Event says so")


def test_a_file_that_changes_is_read_again(start: Start, tmp_path: Path) -> None:
    """A machine file as a ConfigMap is mounted: behind a link that is replaced. A bad one changes nothing. Groups keep nodes.

    Two groups of 20 cross two switches of 16 each, so a third group waits for links. In the last file the nodes that are left lie
    under one switch.
    """
    (tmp_path / "1").write_text(racks(16))
    link = tmp_path / "topology.conf"
    link.symlink_to(tmp_path / "1")
    plane = start("file", machineFile=str(link), policy="slurm-tree")
    running, other, later = name(), name(), name()
    for group in (running, other):
        plane.submit(group, 20, policy="isolated")
    held = [plane.placed(group, 20) for group in (running, other)]
    plane.submit(later, 18, policy="isolated")
    plane.waits_saying(later, "would share links")

    def change(version: str, text: str) -> None:
        (tmp_path / version).write_text(text)
        (tmp_path / "new").symlink_to(tmp_path / version)
        os.replace(tmp_path / "new", link)

    change("2", "SwitchName=s0 Nodes=n[00-\n")
    until(lambda: "The machine stays as it is" in plane.log("file"), "the log says so")
    change("3", switches("n[00-19]", "n[32-51]", "n[20-31,52-63]"))
    until(lambda: "Machine file changed" in plane.log("file"), "it is read")
    nodes = plane.placed(later, 18)
    assert [plane.nodes_of(group) for group in (running, other)] == held
    assert not {*held[0], *held[1]} & set(nodes)


def test_a_file_is_joined_with_labels(start: Start, tmp_path: Path) -> None:
    """Nodes that only labels name hang on the switch of their neighbours."""
    half = "\n".join(f"SwitchName=s{n} Nodes=n[{n * 16:02}-{n * 16 + 7:02}]" for n in range(4))
    (tmp_path / "topology.conf").write_text(f"{half}\nSwitchName=top Switches=s[0-3]\n")
    plane = start("joined", machineFile=str(tmp_path / "topology.conf"), topologyLabels=LABELS[1:])
    group = name()
    plane.submit(group, 16, notes={"kueue.x-k8s.io/podset-required-topology": "topo/rack"})
    assert len({int(node[1:]) // RACK for node in plane.placed(group, 16)}) == 1


def test_labels_that_contradict_the_file_are_an_event(start: Start, tmp_path: Path) -> None:
    """The file counts; the log and an Event of a node say why; groups are placed by the file."""
    (tmp_path / "topology.conf").write_text(racks(16))
    plane = start("contradicts", machineFile=str(tmp_path / "topology.conf"), topologyLabels=LABELS[1:])
    plane.patch("/api/v1/nodes/n00", {"metadata": {"labels": {"topo/rack": "r3"}}})
    try:
        group = name()
        plane.submit(group, 16, notes={"kueue.x-k8s.io/podset-required-topology": "topo/rack"})
        assert parts(plane.placed(group, 16), 16, 16)

        def events() -> list[str]:
            items = plane.get("/api/v1/namespaces/default/events")["items"]
            return [event["message"] for event in items if event["involvedObject"]["kind"] == "Node"]

        until(
            lambda: any("the labels of nodes contradict" in said for said in events()), "an Event of a node"
        )
        assert "the labels of nodes contradict" in plane.log("contradicts")
    finally:
        plane.patch("/api/v1/nodes/n00", {"metadata": {"labels": {"topo/rack": "r0"}}})


def test_labels_that_are_missing_and_that_change(start: Start) -> None:
    """A node without its label gets no group, and the refusal names it; with the label it does. A node that moves counts there."""
    plane = start("labels", topologyLabels=LABELS)
    rack = {"kueue.x-k8s.io/podset-required-topology": "topo/rack"}
    plane.patch("/api/v1/nodes/n05", {"metadata": {"labels": {"topo/rack": None}}})
    try:
        all_nodes, moved = name(), name()
        plane.submit(all_nodes, 64, policy="first-fit")
        events = plane.waits_saying(all_nodes, "not in the machine and without groups: n05")
        assert "never fits" in events
        plane.patch("/api/v1/nodes/n05", {"metadata": {"labels": {"topo/rack": "r0"}}})
        plane.placed(all_nodes, 64)
        plane.remove(all_nodes)
        plane.patch("/api/v1/nodes/n05", {"metadata": {"labels": {"topo/rack": "r1"}}})
        plane.submit(moved, 17, notes=rack)
        assert {int(node[1:]) for node in plane.placed(moved, 17)} == {5, *range(16, 32)}
    finally:
        plane.patch("/api/v1/nodes/n05", {"metadata": {"labels": {"topo/rack": "r0"}}})
