"""Checks isolation on a dragonfly from the cables in its machine file alone: nothing here comes from the engine.

A job may use every link on every minimal route between two of its nodes. A minimal route crosses at most one cable between
groups, any cable that joins both, and takes a shortest way inside each group. Parallel cables are one link.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

Link = tuple[str, str]
"""From one switch to another."""


def hosts(text: str) -> list[str]:
    """The names in a hostlist such as `a[1-3,7],b`, without padding."""
    names, part, depth = [], "", 0
    for letter in [*text, ","]:
        depth += (letter == "[") - (letter == "]")
        if letter != "," or depth:
            part += letter
            continue
        names += _expanded(part)
        part = ""
    return names


def _expanded(part: str) -> list[str]:
    if "[" not in part:
        return [part] if part else []
    head, _, rest = part.partition("[")
    inside, _, tail = rest.partition("]")
    names = []
    for piece in inside.split(","):
        first, _, last = piece.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        names += [
            f"{head}{number:0{len(first)}}{end}" for number in numbers for end in _expanded(tail) or [""]
        ]
    return names


class Cables:
    """The switches, groups and cables of a machine in Topolane's own format."""

    def __init__(self, text: str) -> None:
        machine = tomllib.loads(text)
        groups = [hosts(group) for group in machine["dragonfly"]["groups"]]
        names = [name for group in groups for name in group]
        self.group_of = {name: number for number, group in enumerate(groups) for name in group}
        self.switch_of: dict[str, str] = {}
        for switch in machine["site"][0]["switch"]:
            if "nodes" in switch:
                self.switch_of |= dict.fromkeys(hosts(switch["nodes"]), switch["name"])
        self.near: dict[str, set[str]] = defaultdict(set)
        self.between: dict[tuple[int, int], set[Link]] = defaultdict(set)
        self.bandwidth: dict[Link, float] = defaultdict(float)
        for table in machine["dragonfly"]["cables"]:
            for a, b, count in table["between"]:
                for here, there in ((names[a], names[b]), (names[b], names[a])):
                    self.bandwidth[here, there] += count * table["bandwidth"]
                    ends = self.group_of[here], self.group_of[there]
                    if ends[0] == ends[1]:
                        self.near[here].add(there)
                    else:
                        self.between[ends].add((here, there))
        self.far = {name: self._distances(name) for name in names}
        self.ways: dict[Link, frozenset[Link]] = {}

    def _distances(self, start: str) -> dict[str, int]:
        found, waiting = {start: 0}, deque([start])
        while waiting:
            at = waiting.popleft()
            for other in self.near[at]:
                if other not in found:
                    found[other] = found[at] + 1
                    waiting.append(other)
        return found

    def inside(self, a: str, b: str) -> frozenset[Link]:
        """The links of all shortest ways from one switch of a group to another."""
        known = self.ways.get((a, b))
        if known is None:
            whole = self.far[a][b]
            known = frozenset(
                (at, other)
                for at, gone in self.far[a].items()
                for other in self.near[at]
                if gone + 1 + self.far[other][b] == whole
            )
            self.ways[a, b] = known
        return known

    def links_of(self, nodes: Iterable[str]) -> set[Link]:
        """All links that a job on these nodes may use."""
        switches: dict[int, set[str]] = defaultdict(set)
        for node in nodes:
            switch = self.switch_of[node]
            switches[self.group_of[switch]].add(switch)
        links: set[Link] = set()
        for group, own in switches.items():
            for a in own:
                for b in own:
                    links |= self.inside(a, b)
            for other in switches.keys() - {group}:
                for here, there in self.between[group, other]:
                    links.add((here, there))
                    for a in own:
                        links |= self.inside(a, here)
                    for b in switches[other]:
                        links |= self.inside(there, b)
        return links

    def leads_to_another_group(self, link: Link) -> bool:
        return self.group_of[link[0]] != self.group_of[link[1]]

    def shared(self, jobs: Mapping[int, Sequence[str]]) -> dict[Link, list[int]]:
        """The links that two or more jobs may use, with these jobs."""
        users: dict[Link, list[int]] = defaultdict(list)
        for job, nodes in jobs.items():
            for link in self.links_of(nodes):
                users[link].append(job)
        return {link: users for link, users in users.items() if len(users) > 1}
