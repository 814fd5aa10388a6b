"""When the engine cannot answer: a group that was promised something waits, others are left to kube-scheduler, and nothing is called isolated
that no policy isolated (docs/explanation/when-the-engine-cannot-answer.md).
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from control_plane import LABELS, ControlPlane, member, missing, name
from waiting import DEADLINE, until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

ONLY = "topo/only"
"""A label that some nodes have and lose."""
MAIN = "import sys; from topolane.cli import main; sys.exit(main())"
UNABLE = "the engine cannot answer, and the choice of kube-scheduler would not keep what isolated promises"


def label(plane: ControlPlane, value: str | None) -> None:
    for number in range(8):
        plane.patch(f"/api/v1/nodes/n{number:02}", {"metadata": {"labels": {ONLY: value}}})


@pytest.fixture
def without(empty: ControlPlane, request: pytest.FixtureRequest) -> Iterator[ControlPlane]:
    """A scheduler that had a machine of labels at its start and has none now. The parameter is its arguments."""
    label(empty, "a")
    empty.kill("topolane-scheduler")
    empty.start_scheduler(
        "without", topologyLabels=[ONLY], groupTimeoutSeconds=5, **getattr(request, "param", {})
    )
    try:
        first = name()
        empty.submit(first, 2)
        empty.placed(first, 2)
        label(empty, None)
        yield empty
    finally:
        label(empty, None)
        empty.kill("without")
        empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)


def placement(plane: ControlPlane, group: str) -> dict[str, Any]:
    """What the scheduler wrote on the first pod of a group."""
    notes = plane.pods(group)[0]["metadata"]["annotations"]
    found: dict[str, Any] = json.loads(notes["topolane.io/placement"])
    return found


def k8s(plane: ControlPlane, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", MAIN, "k8s", *words, "--kubeconfig", str(plane.kubeconfig)]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (
            {"topologyLabels": ["no/such"]},
            "they are no machine by topologyLabels no/such",
        ),
        ({"kueueTopology": "none"}, "kueueTopology none"),
        ({"machineFile": "/nowhere/machine.toml"}, "machineFile: open /nowhere/machine.toml"),
        ({"topologyLabels": ["no/such"], "whenUnable": "Stock"}, "they are no machine"),
    ],
)
def test_a_scheduler_without_a_machine_does_not_start(
    empty: ControlPlane, args: dict[str, Any], said: str
) -> None:
    """Wrong labels, a Topology that is not there, a file that is not there: one sentence, and an exit code that is not 0."""
    empty.start_scheduler(log := name(), **args)
    assert empty.processes.pop(log).wait(DEADLINE) != 0
    assert said in empty.log(log)


def test_promised_groups_wait_and_others_do_not(without: ControlPlane) -> None:
    """By default, a group under the policy of the configuration waits, and so does one that asks itself. An Event and two commands say
    why; the exit code of `status` is 1. A group whose policy promises nothing is placed by kube-scheduler, whole, and not as isolated. When the
    labels are back, those that waited are placed."""
    rule, own, free = name(), name(), name()
    without.submit(rule, 2)
    without.submit(own, 2, policy="dedicated")
    without.submit(free, 2, policy="slurm-tree")
    without.waits_saying(rule, UNABLE)
    without.waits_saying(own, UNABLE.replace("isolated", "dedicated"))
    without.placed(free, 2)
    assert placement(without, free)["policy"] == "stock" and placement(without, free)["link_use"] == "unknown"
    words = ("--labels", ",".join(LABELS))
    done = k8s(without, "status", *words)
    assert done.returncode == 1 and "does not decide" in done.stdout, done
    assert "the engine cannot answer" in k8s(without, "explain", f"default/{rule}", *words).stdout
    label(without, "b")
    without.placed(rule, 2)
    without.placed(own, 2)
    assert placement(without, rule)["link_use"] == "isolated"


@pytest.mark.parametrize("without", [{"whenUnable": "Stock"}], indirect=True)
def test_the_administrator_may_choose_stock_for_a_rule(without: ControlPlane) -> None:
    """With whenUnable: Stock, a group under the policy of the configuration is placed by kube-scheduler, and is not isolated; one that asks for
    isolation, for a level, or for segments itself waits nevertheless."""
    rule = name()
    without.submit(rule, 2)
    without.placed(rule, 2)
    found = placement(without, rule)
    assert (found["policy"], found["link_use"], found.get("links")) == ("stock", "unknown", None)
    own = name()
    without.submit(own, 2, policy="isolated")
    without.waits_saying(own, UNABLE)


def test_a_pod_that_asks_for_isolation_alone_waits(empty: ControlPlane) -> None:
    """It is in no group, so it could have no links of its own: its Event says what to do. Without the annotation it runs."""
    for policy, runs in (("isolated", False), ("slurm-tree", True), ("", True)):
        pod = member(group := name(), 0, 0, policy=policy)
        del pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"]
        empty.post("/api/v1/namespaces/default/pods", pod)
        path = f"/api/v1/namespaces/default/pods/{group}-0"
        if runs:
            until(lambda path=path: empty.get(path)["spec"].get("nodeName"), "the pod has a node")
        else:
            empty.waits_saying(
                group, "the pod is in no group that this scheduler places: set topolane.io/group-size"
            )
            assert not empty.get(path)["spec"].get("nodeName")
        empty.delete(path)


def test_a_refusal_does_not_break_a_promise_that_was_asked_for(empty: ControlPlane) -> None:
    """With whenRefused: Stock, kube-scheduler chooses for a group of the configuration's policy that has no links of its own; a group that asks
    for isolation itself waits."""
    empty.kill("topolane-scheduler")
    empty.start_scheduler("stock", topologyLabels=LABELS, groupTimeoutSeconds=5, whenRefused="Stock")
    try:
        first, rule, own = name(), name(), name()
        empty.submit(first, 20)
        empty.placed(first, 20)
        empty.submit(own, 40, policy="isolated")
        empty.waits_saying(own, "would share links")
        empty.remove(own)
        until(lambda: not empty.pods(own), "they are gone")
        empty.submit(rule, 40)
        empty.placed(rule, 40)
        assert (placement(empty, rule)["policy"], placement(empty, rule)["link_use"]) == ("stock", "unknown")
    finally:
        empty.kill("stock")
        empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
