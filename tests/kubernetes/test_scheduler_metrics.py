"""The metrics of topolane-scheduler."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from control_plane import LABELS, SMALL, TOKEN, ControlPlane, container, free_port, missing, name
from waiting import DEADLINE, until

pytest.importorskip("prometheus_client", reason="prometheus-client is not installed")
from prometheus_server import check_complete, check_quiet, check_scraped, scraping


class Metrics:
    """/metrics of a scheduler."""

    def __init__(self, plane: ControlPlane, port: int) -> None:
        self.plane, self.port = plane, port

    def text(self) -> str:
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, context=self.plane.tls, timeout=DEADLINE) as answer:
            return str(answer.read().decode())

    def value(self, metric: str, **labels: str) -> float:
        """The sum of the samples that have these labels."""
        starts = (f"topolane_kubernetes_{metric}{{", f"topolane_kubernetes_{metric} ")
        said = [f'{key}="{value}"' for key, value in labels.items()]
        lines = [line for line in self.text().splitlines() if line.startswith(starts)]
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(one in line for one in said))


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_the_metrics_tell_what_the_scheduler_did(empty: ControlPlane) -> None:
    """One group placed and one refused: the counters, the groups, the nodes of each domain and the room say so."""
    empty.kill("topolane-scheduler")
    port = free_port()
    empty.start_scheduler("measured", port=port, topologyLabels=LABELS, groupTimeoutSeconds=5)
    metrics = Metrics(empty, port)
    idle = ""
    try:
        until(metrics.text, "/metrics")
        first, second = name(), name()
        empty.submit(first, 20)
        idle = ({f"n{node:02}" for node in range(64)} - {*empty.placed(first, 20)}).pop()
        empty.submit(second, 44)
        empty.waits_saying(second, "would share links")
        assert metrics.value("calls_total", end="placed") == 1
        assert metrics.value("calls_total", end="refused") >= 1
        assert metrics.value("calls_total", end="wait_failed") == 0 == metrics.value("failures_total")
        assert metrics.value("call_seconds_count") >= 2 <= metrics.value("decision_seconds_count")
        assert metrics.value("jobs", state="running", policy="isolated") == 1
        assert metrics.value("jobs", state="waiting", policy="isolated") == 1
        assert metrics.value("refused_jobs", kind="would-share-links") == 1
        until(lambda: metrics.value("refused_wait_seconds", kind="would-share-links") > 0.5, "the wait grows")
        assert metrics.value("nodes", state="busy") == 20 and metrics.value("nodes", state="idle") == 44
        assert metrics.value("gpus") == 512 and metrics.value("gpus_free") == 352
        racks = [
            metrics.value("domain_nodes", level="topo/rack", domain=f"r{rack}", state="idle")
            for rack in range(4)
        ]
        assert sum(racks) == 44 == metrics.value("domain_nodes", level="topo/block", state="idle")
        for size in (1, 4, 16):
            room = sum(idle // size for idle in racks)
            assert metrics.value("room_jobs", level="topo/rack", size=str(size)) == room
        assert metrics.value("call_limit_seconds", profile="topolane") == 0.2
        empty.patch(f"/api/v1/nodes/{idle}", {"spec": {"unschedulable": True}})
        until(lambda: metrics.value("nodes", state="out_of_service") == 1, "it is out of service")
        assert metrics.value("nodes", state="idle") == 43 and metrics.value("gpus") == 504
        for group in (first, second):
            empty.remove(group)
        third = name()
        empty.submit(third, 20, policy="dedicated")
        empty.placed(third, 20)
        note = empty.pods(third)[0]["metadata"]["annotations"]["topolane.io/placement"]
        assert metrics.value("links_owned") == len(json.loads(note)["links"]) > 0
    finally:
        if idle:
            empty.patch(f"/api/v1/nodes/{idle}", {"spec": {"unschedulable": None}})
        empty.kill("measured")
        empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_preempted_groups_are_counted_by_what_was_taken(in_chassis: ControlPlane) -> None:
    """A group takes the links of another, then nodes of another, and a single pod the node of a third: one each, however many pods."""
    plane, port = in_chassis, free_port()
    for kind, value in (("below", 10), ("above", 30)):
        plane.post("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": kind}, "value": value})
    plane.kill("topolane-scheduler")
    plane.start_scheduler(port=port, topologyLabels=SMALL, groupTimeoutSeconds=5)
    metrics = Metrics(plane, port)

    def counted() -> list[float]:
        return [metrics.value("preemptions_total", reason=reason) for reason in ("links", "room", "pod")]

    def placed(size: int, priority: str, policy: str = "first-fit") -> str:
        group = name()
        plane.submit(group, size, policy=policy, priorityClassName=priority)
        plane.placed(group, size)
        return group

    until(metrics.text, "/metrics")
    held = [placed(9, "below", "isolated") for _ in range(4)]
    assert counted() == [0, 0, 0]
    above = placed(10, "above", "isolated")
    # On a busy machine nodes come late, the four lie otherwise, and one of them may not be enough.
    lost = [group for group in held if len(plane.pods(group)) < 9]
    assert lost and counted() == [len(lost), 0, 0]
    for group in [*held, above]:
        plane.remove(group)
    placed(64, "below")
    placed(4, "above")
    assert counted() == [len(lost), 1, 0]
    placed(60, "below")
    body = {"schedulerName": "topolane", "priorityClassName": "above", "containers": [container(8)]}
    plane.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "single"}, "spec": body})
    until(lambda: counted() == [len(lost), 1, 1], "the single pod takes a node")
    path = "/api/v1/namespaces/default/pods/single"
    until(lambda: plane.get(path)["spec"].get("nodeName"), "it has it")
    assert counted() == [len(lost), 1, 1]


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_prometheus_scrapes_the_scheduler(prometheus: str, empty: ControlPlane, tmp_path: Path) -> None:
    """Prometheus reads all metrics of the page with a token, and evaluates all rules and panels. A request without a token is
    refused."""
    empty.kill("topolane-scheduler")
    port = free_port()
    empty.start_scheduler("measured", port=port, topologyLabels=LABELS)
    scrape = {
        "scheme": "https",
        "authorization": {"credentials": TOKEN},
        "tls_config": {"insecure_skip_verify": True},
    }
    metrics = Metrics(empty, port)
    try:
        until(metrics.text, "/metrics")
        group = name()
        empty.submit(group, 4)
        empty.placed(group, 4)
        with scraping(prometheus, tmp_path, "kubernetes", f"127.0.0.1:{port}", **scrape) as server:
            check_scraped(server, "kubernetes", metrics.text())
            until(
                lambda: server.values('topolane_kubernetes_jobs{state="running"}') == [1],
                "a scrape after the start",
            )
            check_quiet(server)
        check_complete("kubernetes", metrics.text(), without_samples=("failures_total",))
        empty.remove(group)
        request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, context=empty.tls, timeout=DEADLINE)
        assert refused.value.code in (401, 403)
    finally:
        empty.kill("measured")
        empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
