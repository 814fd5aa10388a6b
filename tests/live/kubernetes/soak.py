"""Runs thousands of groups in random order on a control plane whose parts are killed, and checks that nothing
is given twice and nothing hangs.

Two schedulers compete for one lease. At random moments, one of them, etcd or the API server gets kill -9 and
is restarted, and nodes are cordoned, deleted and created again. soak_checks.py judges the pods that the API
server reports. The exit code is 1 if something was wrong.
"""

from __future__ import annotations

import contextlib
import json
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from api import Api, StatusError, Watch
from cluster import LEVELS, NODES, QPS, Cluster, Shape, cluster, load_text, node_name, say
from control_plane import Body
from measure import Options, Result
from soak_checks import GPU, LABEL, Checks
from waiting import until

PODS = "/api/v1/namespaces/default/pods"
ROOM = {"cpu": "64", "memory": "512Gi", GPU: "8"}
SIZES = (1, 1, 2, 2, 3, 4, 5, 6, 8, 9, 12)
TIMEOUT = 5
"""Seconds that members with a node wait for the others."""
IN_PARTS = 4 * TIMEOUT + 10
"""A group that is only in part on nodes for more than this many seconds is an error. The time covers the
lease, a restart of the scheduler and its backoff.
"""
STUCK = 180.0
"""If nothing is placed for this many seconds, the waiting groups are stuck."""
FAULTS = ("scheduler", "scheduler", "etcd", "kube-apiserver", "cordon", "cordon", "delete node")


def pod(group: str, size: int, rank: int, gpus: int, policy: str) -> Body:
    amounts = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    return {
        "metadata": {
            "name": f"{group}-{rank}",
            "labels": {LABEL: group, "apps.kubernetes.io/pod-index": str(rank)},
            "annotations": {"topolane.io/group-size": str(size), "topolane.io/policy": policy},
        },
        "spec": {
            "schedulerName": "topolane",
            "containers": [
                {"name": "c", "image": "none", "resources": {"requests": amounts, "limits": amounts}}
            ],
        },
    }


class Soak:
    """The groups, the faults and the counts of a run."""

    def __init__(self, plane: Cluster, options: Options) -> None:
        self.plane, self.options, self.api = plane, options, Api(plane)
        self.draw = random.Random(options.seed)
        self.checks = Checks(plane.shape, TIMEOUT)
        self.alive: dict[str, tuple[int, float]] = {}
        """The size of each group, and the time of its end; 0 while it waits."""
        self.number = 0
        self.faults: Counter[str] = Counter()
        self.faults_at: list[tuple[float, str]] = []
        """The time of each fault, by time.monotonic(), and its kind."""
        self.calm_since = time.monotonic()
        self.out: set[int] = set()
        self.pool = ThreadPoolExecutor(8)

    def start(self, name: str) -> None:
        config = self.plane.scheduler_config({"groupTimeoutSeconds": TIMEOUT, "topologyLabels": LEVELS})
        config["clientConnection"] |= {"qps": QPS, "burst": QPS}
        config["leaderElection"] = {
            "leaderElect": True, "resourceName": "topolane-scheduler", "leaseDuration": "4s", "renewDeadline": "3s",
            "retryPeriod": "1s",
        }  # fmt: skip
        path = self.plane.home / f"{name}.json"
        path.write_text(json.dumps(config))
        self.plane.run("topolane-scheduler", f"--config={path}", "--secure-port=0", "-v=2", log=name)

    def submit(self) -> None:
        size, gpus = self.draw.choice(SIZES), self.draw.choice((8, 8, 4, 2))
        policy, group = self.draw.choice(self.options.policies.split(",")), f"s{self.number}"
        self.number += 1
        self.alive[group] = (size, 0.0)
        ranks = list(range(size))
        self.draw.shuffle(ranks)
        list(self.pool.map(lambda rank: self.api.post(PODS, pod(group, size, rank, gpus, policy)), ranks))

    def remove(self, group: str) -> None:
        size, _ = self.alive.pop(group)
        list(self.pool.map(lambda rank: self.api.delete(f"{PODS}/{group}-{rank}"), range(size)))

    def step(self) -> None:
        """Removes groups whose run time is over, and submits new ones."""
        now = time.monotonic()
        for group, (size, ends) in list(self.alive.items()):
            if not ends and self.checks.is_whole(group):
                self.alive[group] = (size, now + self.draw.uniform(0, 2))
            elif ends and now > ends:
                self.remove(group)

    def fault(self) -> None:
        what = self.draw.choice(FAULTS)
        node = self.draw.randrange(self.plane.shape.nodes)
        is_of_node = what in ("cordon", "delete node")
        self.faults_at.append((time.monotonic(), f"{what} {node_name(node)}" if is_of_node else what))
        if what == "scheduler":
            name = self.draw.choice(("one", "two"))
            self.plane.kill(name)
            self.start(name)
        elif what in ("etcd", "kube-apiserver"):
            self.restart(what)
        elif what == "cordon" and node not in self.out:
            self.out.add(node)
            self.api.patch(f"{NODES}/{node_name(node)}", {"spec": {"unschedulable": True}})
        elif what == "cordon":
            self.out.discard(node)
            self.api.patch(f"{NODES}/{node_name(node)}", {"spec": {"unschedulable": None}})
        else:
            self.replace(node)
        self.faults[what] += 1
        self.calm_since = time.monotonic()

    def restart(self, name: str) -> None:
        """Kills a process with kill -9, and starts it again with the same command."""
        process = self.plane.processes[name]
        command = [str(part) for part in process.args]  # type: ignore[union-attr]
        self.plane.kill(name)
        self.plane.run(name, *command[1:])
        until(lambda: self.plane.get("/readyz", text=True) == "ok", f"{name} answers again")

    def replace(self, node: int) -> None:
        """Deletes a node and all groups with a pod there, and creates the node again."""
        self.api.delete(f"{NODES}/{node_name(node)}")
        time.sleep(0.5)
        for group in list(self.alive):
            if node in self.checks.nodes_of(group):
                self.checks.excused.add(group)
                self.remove(group)
        # A pod may have been bound meanwhile; remove every group that still has a pod on the deleted node.
        left = [one for one in self.api.items(PODS) if one["spec"].get("nodeName") == node_name(node)]
        for group in {one["metadata"]["labels"][LABEL] for one in left} & set(self.alive):
            self.checks.excused.add(group)
            self.remove(group)
        room: dict[str, Any] = {"pods": "110", **self.plane.shape.room}
        with contextlib.suppress(StatusError):
            self.api.post(NODES, self.plane.node(node, room))
        self.out.discard(node)

    def run(self) -> None:
        begin = last_said = last_placed = time.monotonic()
        end = begin + self.options.minutes * 60 if self.options.minutes else float("inf")
        next_fault = begin + 5
        placed = 0
        while self.checks.pods < self.options.placements and time.monotonic() < end:
            now = time.monotonic()
            while len(self.alive) < self.options.alive:
                self.submit()
            self.step()
            if self.options.every and now > next_fault:
                self.fault()
                next_fault = time.monotonic() + self.draw.expovariate(1 / self.options.every)
            for group in self.checks.in_parts(IN_PARTS, self.calm_since):
                self.checks.say(f"{group} is in parts for more than {IN_PARTS} s")
                self.checks.excused.add(group)
            if self.checks.placements > placed:
                placed, last_placed = self.checks.placements, now
            if now - last_placed > STUCK:
                self.checks.say(f"nothing was placed for {STUCK:.0f} s; {len(self.alive)} groups wait or run")
                break
            if now - last_said > 60:
                last_said = now
                self.said(begin)
            time.sleep(0.02)
        self.drain()
        self.said(begin)

    def drain(self) -> None:
        """Checks that all waiting groups are placed once no new ones come and all nodes are in service."""
        for node in sorted(self.out):
            self.api.patch(f"{NODES}/{node_name(node)}", {"spec": {"unschedulable": None}})
        end = time.monotonic() + STUCK
        while self.alive and time.monotonic() < end:
            self.step()
            time.sleep(0.05)
        for group in self.alive:
            self.checks.say(
                f"{group} is stuck: {len(self.checks.nodes_of(group))} nodes for {self.alive[group][0]} pods"
            )

    def late(self) -> list[str]:
        """Descriptions of groups that were in parts for longer than their timeout, with the faults from ten
        seconds before that until its end.
        """
        return [
            f"{time.strftime('%H:%M:%S', time.localtime(time.time() - time.monotonic() + one.begun))} {one.group} of {one.size} pods "
            f"for {one.ended - one.begun:.1f} s; faults: "
            + (", ".join(f"{what} at {at - one.begun:+.1f} s" for at, what in self.faults_at
                         if one.begun - 10 < at < one.ended) or "none")
            for one in self.checks.late
        ]  # fmt: skip

    def said(self, begin: float) -> None:
        checks, minutes = self.checks, (time.monotonic() - begin) / 60
        faults = ", ".join(f"{count} {what}" for what, count in sorted(self.faults.items()))
        say(f"{checks.placements:,} groups placed, {checks.pods:,} pods, in {minutes:.1f} minutes; faults: {faults or 'none'}; "
            f"longest in parts {checks.longest_in_parts:.1f} s; wrong: {checks.count_wrong}")  # fmt: skip


def measure(options: Options) -> Result:
    """Runs the soak and prints what was wrong."""
    with cluster(Shape(options.nodes, 8, 4, ROOM)) as plane:
        soak = Soak(plane, options)
        for name in ("one", "two"):
            soak.start(name)
        watch = Watch(soak.api, soak.checks.noted)
        try:
            soak.run()
        finally:
            watch.stop()
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                for name in ("one", "two"):
                    (options.keep / f"{name}.log").write_text(plane.log(name))
    checks = soak.checks
    print(
        f"{checks.placements:,} groups of {checks.pods:,} pods were placed under {sum(soak.faults.values())} faults."
    )
    print(load_text())
    if late := soak.late():
        print(f"{len(late):,} groups were in parts for longer than their timeout of {TIMEOUT} s:")
    for text in late:
        print(f"  {text}")
    for text in checks.wrong:
        print(f"WRONG: {text}")
    if checks.pods < options.placements:
        print(f"MISSED: {options.placements:,} pods were asked for")
    facts = {
        "groups": checks.placements,
        "pods": checks.pods,
        "faults": dict(soak.faults),
        "wrong": checks.wrong,
    }
    return Result(facts=facts, failed=bool(checks.count_wrong) or checks.pods < options.placements)
