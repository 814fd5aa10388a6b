"""Checks that nothing is given twice, from the pods that the API server lists, without any code of Topolane."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from cluster import Shape
from control_plane import Body
from groups import crossed

LABEL, NOTE = "scheduling.x-k8s.io/pod-group", "topolane.io/placement"
GPU = "nvidia.com/gpu"
MOST_KEPT = 20


@dataclass
class Held:
    """A group that has pods on nodes."""

    pods: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The node and the number of GPUs of each pod."""
    size: int = 0
    note: Body = field(default_factory=dict)
    begun: float = 0.0
    """When its first pod got a node."""
    was_whole: bool = False


@dataclass(frozen=True)
class InParts:
    """A group with only some pods on nodes for longer than its timeout. Times are of time.monotonic()."""

    group: str
    size: int
    begun: float
    ended: float


class Checks:
    """Follows pods and records errors as sentences."""

    def __init__(self, shape: Shape, timeout: float) -> None:
        self.shape = shape
        self.timeout = timeout
        self.room = int(shape.room[GPU])
        self.lock = threading.Lock()
        self.groups: dict[str, Held] = defaultdict(Held)
        self.wrong: list[str] = []
        self.count_wrong = self.placements = self.pods = 0
        self.longest_in_parts = 0.0
        self.late: list[InParts] = []
        self.excused: set[str] = set()
        """Groups that had a pod on a deleted node."""

    def noted(self, kind: str, pod: Body) -> None:
        """Handles an event of the watch."""
        with self.lock:
            if kind == "LISTED":
                self._listed(pod)
            else:
                self._noted(kind, pod)

    def _say(self, text: str) -> None:
        self.count_wrong += 1
        if len(self.wrong) < MOST_KEPT:
            self.wrong.append(text)

    def _listed(self, listed: Body) -> None:
        there = {pod["metadata"]["uid"] for pod in listed["items"]}
        for name, held in list(self.groups.items()):
            for uid in set(held.pods) - there:
                self._gone(name, uid)
        for pod in listed["items"]:
            self._noted("ADDED", pod)

    def _noted(self, kind: str, pod: Body) -> None:
        name = pod["metadata"].get("labels", {}).get(LABEL)
        node, uid = pod["spec"].get("nodeName"), pod["metadata"]["uid"]
        if not name or not node:
            return
        if kind == "DELETED" or pod["status"].get("phase") in ("Succeeded", "Failed"):
            self._gone(name, uid)
            return
        held = self.groups[name]
        if uid in held.pods:
            return
        gpus = int(pod["spec"]["containers"][0]["resources"]["requests"][GPU])
        held.pods[uid] = (int(node[1:]), gpus)
        self.pods += 1
        note = json.loads(pod["metadata"].get("annotations", {}).get(NOTE, "{}"))
        if not note:
            self._say(f"{name}: a pod on {node} has no placement")
        elif note["nodes"][note["rank"]] != node:
            self._say(
                f"{name}: the pod of rank {note['rank']} is on {node}, not on {note['nodes'][note['rank']]}"
            )
        held.note, held.size = note, len(note.get("nodes", []))
        held.begun = held.begun or time.monotonic()
        self._node(int(node[1:]))
        if len(held.pods) == held.size and not held.was_whole:
            self.placements += 1
            held.was_whole = True
            now = time.monotonic()
            self.longest_in_parts = max(self.longest_in_parts, now - held.begun)
            if now - held.begun > self.timeout:
                self.late.append(InParts(name, held.size, held.begun, now))
        if len(held.pods) == 1:
            self._links(name, held)

    def _gone(self, name: str, uid: str) -> None:
        held = self.groups.get(name)
        if held and held.pods.pop(uid, None) and not held.pods:
            del self.groups[name]

    def _node(self, node: int) -> None:
        taken = sum(gpus for held in self.groups.values() for at, gpus in held.pods.values() if at == node)
        if taken > self.room:
            self._say(f"node {node} has {taken} of {self.room} GPUs taken")

    def _links(self, name: str, held: Held) -> None:
        """Checks that a group which has just got its first pod shares no link with another group."""
        mine = self._crossed(held)
        for other, there in self.groups.items():
            if other == name or not there.pods:
                continue
            is_by_number = (
                "isolated" not in (held.note["link_use"], there.note["link_use"])
                and held.note.get("machine") == there.note.get("machine")
            )  # fmt: skip
            if is_by_number:
                both = set(held.note.get("links") or ()) & set(there.note.get("links") or ())
            else:
                both = mine & self._crossed(there)
            if both:
                self._say(f"{name} and {other} both have {', '.join(map(str, sorted(both, key=str)[:3]))}")

    def _crossed(self, held: Held) -> set[str]:
        return crossed(self.shape, [int(node[1:]) for node in held.note.get("nodes", [])])

    def in_parts(self, longest: float, excuse: float) -> list[str]:
        """Groups that are in parts for longer than allowed. Time before `excuse` does not count."""
        with self.lock:
            now = time.monotonic()
            return [
                name
                for name, held in self.groups.items()
                if 0 < len(held.pods) < held.size and not held.was_whole and name not in self.excused
                and now - max(held.begun, excuse) > longest
            ]  # fmt: skip

    def say(self, text: str) -> None:
        with self.lock:
            self._say(text)

    def nodes_of(self, group: str) -> set[int]:
        with self.lock:
            return {node for node, _ in self.groups[group].pods.values()} if group in self.groups else set()

    def is_whole(self, group: str) -> bool:
        with self.lock:
            return group in self.groups and self.groups[group].was_whole
