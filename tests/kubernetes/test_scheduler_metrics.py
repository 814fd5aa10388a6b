"""The metrics of topolane-scheduler, and the alert rules and the dashboard on them."""

from __future__ import annotations

import json
import re
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from control_plane import LABELS, SMALL, TOKEN, ControlPlane, container, free_port, missing, name, wait_for

EXAMPLES = Path(__file__).parents[2] / "examples" / "kubernetes"
RULES, DASHBOARD = EXAMPLES / "topolane-alerts.yml", EXAMPLES / "topolane-dashboard.json"
NAME = re.compile(r"topolane_kubernetes_\w+")
SOURCE = Path(__file__).parents[2] / "native" / "kubernetes" / "plugin" / "metrics.go"

FIRES = {
    "TopolaneSchedulerMetricsMissing": {},
    "TopolaneSchedulerFalls": {'failures_total{entry="PreFilter"}': "0+1x60"},
    "TopolaneSchedulerStockDecides": {
        'calls_total{end="placed"}': "0+90x60",
        'calls_total{end="stock_slow"}': "0+10x60",
    },
    "TopolaneSchedulerGroupStarves": {
        'refused_wait_seconds{kind="would-share-links"}': "90000x120",
        'nodes{state="idle"}': "4x120",
    },
    "TopolaneSchedulerGroupNeverFits": {'refused_groups{kind="never"}': "2x60"},
    "TopolaneSchedulerCallsSlow": {
        'call_seconds_bucket{le="0.1"}': "0+90x60",
        'call_seconds_bucket{le="0.5"}': "0+100x60",
        'call_seconds_bucket{le="+Inf"}': "0+100x60",
        "call_limit_seconds": "0.2x60",
    },
}
"""Series for which each rule fires, in promtool's notation."""
WELL = {
    "call_limit_seconds": "0.2x120",
    'failures_total{entry="PreFilter"}': "3x120",
    'calls_total{end="placed"}': "0+90x120",
    'calls_total{end="refused"}': "0+900x120",
    'calls_total{end="stock_failed"}': "2x120",
    'refused_wait_seconds{kind="would-share-links"}': "600x120",
    'refused_wait_seconds{kind="not-now"}': "900000x120",
    'refused_groups{kind="never"}': "0x120",
    'nodes{state="idle"}': "4x120",
    'call_seconds_bucket{le="0.1"}': "0+100x120",
    'call_seconds_bucket{le="+Inf"}': "0+100x120",
}


def expressions() -> list[str]:
    return [
        target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]
    ]


def check(promtool: str, *words: object, given: str = "") -> None:
    done = subprocess.run([promtool, *map(str, words)], input=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def series(values: dict[str, str]) -> list[dict[str, str]]:
    rows = []
    for key, numbers in values.items():
        base, _, labels = key.partition("{")
        inside = ",".join(filter(None, ['instance="a"', labels.rstrip("}")]))
        first = numbers if "+" in numbers else numbers.replace("x", "+0x")
        rows.append({"series": f"topolane_kubernetes_{base}{{{inside}}}", "values": first})
    return rows


def test_rules_and_panels_use_metrics_that_are_served() -> None:
    """Every metric named in the alert rules and in the dashboard is one of the plugin; no panel stands on another."""
    served = {
        f"topolane_kubernetes_{word}" for word in re.findall(r'(?:Name: |gauge\()"(\w+)"', SOURCE.read_text())
    }
    used = {
        one.removesuffix("_bucket")
        for text in (RULES.read_text(), *expressions())
        for one in NAME.findall(text)
    }
    assert len(used) > 10 and used <= served, used - served
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24
        taken |= cells


def test_prometheus_takes_the_rules_and_the_queries(promtool: str, tmp_path: Path) -> None:
    replaced = (("$__rate_interval", "5m"), ("$__range", "1h"), ("$instance", ".*"))
    rules = []
    for number, query in enumerate(expressions()):
        for word, value in replaced:
            query = query.replace(word, value)
        rules.append({"record": f"panel:{number}", "expr": query})
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    check(promtool, "check", "rules", RULES)
    check(promtool, "check", "rules", file)


@pytest.mark.parametrize("alert", [*FIRES, None])
def test_a_scheduler_rule_fires_for_its_fault_alone(promtool: str, tmp_path: Path, alert: str | None) -> None:
    """Each rule fires for series that show its fault; none fires for a scheduler that works."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing")
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    assert {rule["alert"] for rule in group["rules"]} == FIRES.keys()
    given = WELL if alert is None else FIRES[alert]
    asked = [
        {
            "expr": f'count(ALERTS{{alertname="{one}",alertstate="firing"}})',
            "eval_time": "110m" if one == "TopolaneSchedulerGroupStarves" else "50m",
            "exp_samples": [{"labels": "{}", "value": 1}] if one == alert else [],
        }
        for one in FIRES
        if alert is None or one == alert
    ]
    file = tmp_path / "test.yml"
    tests = [{"interval": "1m", "input_series": series(given), "promql_expr_test": asked}]
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    check(promtool, "test", "rules", file)


class Metrics:
    """/metrics of a scheduler."""

    def __init__(self, plane: ControlPlane, port: int) -> None:
        self.plane, self.port = plane, port

    def text(self) -> str:
        request = urllib.request.Request(
            f"https://127.0.0.1:{self.port}/metrics", headers={"Authorization": f"Bearer {TOKEN}"}
        )
        with urllib.request.urlopen(request, context=self.plane.tls, timeout=30) as answer:
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
        wait_for("/metrics", metrics.text)
        first, second = name(), name()
        empty.submit(first, 20)
        idle = ({f"n{node:02}" for node in range(64)} - {*empty.placed(first, 20)}).pop()
        empty.submit(second, 44)
        empty.waits_saying(second, "would share links")
        assert metrics.value("calls_total", end="placed") == 1
        assert metrics.value("calls_total", end="refused") >= 1
        assert metrics.value("calls_total", end="stock_failed") == 0 == metrics.value("failures_total")
        assert metrics.value("call_seconds_count") >= 2 <= metrics.value("decision_seconds_count")
        assert metrics.value("groups", state="running", policy="isolated") == 1
        assert metrics.value("groups", state="waiting", policy="isolated") == 1
        assert metrics.value("refused_groups", kind="would-share-links") == 1
        time.sleep(1.1)
        assert metrics.value("refused_wait_seconds", kind="would-share-links") > 0.5
        assert metrics.value("nodes", state="busy") == 20 and metrics.value("nodes", state="idle") == 44
        assert metrics.value("gpus") == 512 and metrics.value("gpus_free") == 352
        racks = [
            metrics.value("domain_nodes", level="topo/rack", domain=f"r{rack}", state="idle")
            for rack in range(4)
        ]
        assert sum(racks) == 44 == metrics.value("domain_nodes", level="topo/block", state="idle")
        for size in (1, 4, 16):
            room = sum(idle // size for idle in racks)
            assert metrics.value("room_groups", level="topo/rack", size=str(size)) == room
        assert metrics.value("call_limit_seconds", profile="topolane") == 0.2
        empty.patch(f"/api/v1/nodes/{idle}", {"spec": {"unschedulable": True}})
        wait_for("it is out of service", lambda: metrics.value("nodes", state="out_of_service") == 1)
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

    wait_for("/metrics", metrics.text)
    held = [placed(9, "below", "isolated") for _ in range(4)]
    assert counted() == [0, 0, 0]
    held.append(placed(10, "above", "isolated"))
    assert counted() == [1, 0, 0]
    for group in held:
        plane.remove(group)
    placed(64, "below")
    placed(4, "above")
    assert counted() == [1, 1, 0]
    placed(60, "below")
    body = {"schedulerName": "topolane", "priorityClassName": "above", "containers": [container(8)]}
    plane.post("/api/v1/namespaces/default/pods", {"metadata": {"name": "single"}, "spec": body})
    wait_for("the single pod takes a node", lambda: counted() == [1, 1, 1])
    path = "/api/v1/namespaces/default/pods/single"
    wait_for("it has it", lambda: plane.get(path)["spec"].get("nodeName"))
    assert counted() == [1, 1, 1]


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_prometheus_takes_what_the_scheduler_serves(promtool: str, empty: ControlPlane) -> None:
    """promtool reads all of /metrics that is ours; a request without a token is refused."""
    empty.kill("topolane-scheduler")
    port = free_port()
    empty.start_scheduler("measured", port=port, topologyLabels=LABELS)
    try:
        text = wait_for("/metrics", Metrics(empty, port).text)
        ours = [line for line in text.splitlines() if "topolane_kubernetes_" in line]
        # "non-histogram and non-summary metrics should not have ..._count" and the like are of names alone.
        check(promtool, "check", "metrics", given="\n".join(ours) + "\n")
        request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, context=empty.tls, timeout=30)
        assert refused.value.code in (401, 403)
    finally:
        empty.kill("measured")
        empty.start_scheduler(topologyLabels=LABELS, groupTimeoutSeconds=5)
