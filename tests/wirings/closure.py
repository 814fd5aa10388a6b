"""Checks isolation on a dragonfly from the cables in its machine file alone: nothing here comes from the engine.

A job may use every link on every minimal route between two of its nodes. A minimal route crosses at most one cable between
groups, any cable that joins both, and takes a shortest way inside each group. Parallel cables are one link.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

Link = tuple[str, str]
"""From one switch to another."""
L = TypeVar("L")


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


class ShortestWays:
    """The shortest ways between switches over their cables."""

    def __init__(self, near: Mapping[str, Collection[str]]) -> None:
        self.near = near
        self.far = {name: self._distances(name) for name in near}
        self._ways: dict[Link, frozenset[Link]] = {}

    def _distances(self, start: str) -> dict[str, int]:
        found, waiting = {start: 0}, deque([start])
        while waiting:
            at = waiting.popleft()
            for other in self.near[at]:
                if other not in found:
                    found[other] = found[at] + 1
                    waiting.append(other)
        return found

    def links(self, a: str, b: str) -> frozenset[Link]:
        """The links of all shortest ways from one switch to another."""
        known = self._ways.get((a, b))
        if known is None:
            whole = self.far[a][b]
            known = frozenset(
                (at, other)
                for at, gone in self.far[a].items()
                for other in self.near[at]
                if gone + 1 + self.far[other][b] == whole
            )
            self._ways[a, b] = known
        return known


def shared_links(
    links_of: Callable[[list[str]], set[L]], states: Iterable[Mapping[int, list[str]]]
) -> list[dict[L, list[int]]]:
    """Of each state with such links, the links that two or more jobs may use, with these jobs. A job keeps its nodes."""
    found = []
    held: dict[int, set[L]] = {}
    for jobs in states:
        held = {job: held[job] if job in held else links_of(nodes) for job, nodes in jobs.items()}
        if sum(map(len, held.values())) > len(set().union(*held.values())):
            users: dict[L, list[int]] = {}
            for job, links in held.items():
                for link in links:
                    users.setdefault(link, []).append(job)
            found.append({link: jobs for link, jobs in users.items() if len(jobs) > 1})
    return found


def leaves_of(site: Mapping[str, Any]) -> dict[str, list[str]]:
    """The nodes of each switch of a site that has nodes."""
    leaves: dict[str, list[str]] = {}
    if "children" in site:
        nodes, each = hosts(site["nodes"]), site["children"][0]
        for number in range(len(nodes) // each):
            leaves[f"leaf{number}"] = nodes[number * each : (number + 1) * each]
    for switch in site.get("switch", []):
        if "nodes" in switch:
            leaves[switch["name"]] = hosts(switch["nodes"])
    return leaves


class Held(list[str]):
    """The nodes of a job, and the cables that it owns between groups, in both directions."""

    def __init__(self, nodes: Iterable[str], own: Iterable[Link] = ()) -> None:
        super().__init__(nodes)
        self.own = {link for here, there in own for link in ((here, there), (there, here))}


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
        self.ways = ShortestWays({name: self.near[name] for name in names})

    def links_of(self, nodes: Iterable[str]) -> set[Link]:
        """All links that a job on these nodes may use. Between two groups where it owns cables, it has these alone."""
        kept = nodes.own if isinstance(nodes, Held) else set()
        switches: dict[int, set[str]] = defaultdict(set)
        for node in nodes:
            switch = self.switch_of[node]
            switches[self.group_of[switch]].add(switch)
        links: set[Link] = set()
        for group, own in switches.items():
            for a in own:
                for b in own:
                    links |= self.ways.links(a, b)
            for other in switches.keys() - {group}:
                for here, there in self.between[group, other] & kept or self.between[group, other]:
                    links.add((here, there))
                    for a in own:
                        links |= self.ways.links(a, here)
                    for b in switches[other]:
                        links |= self.ways.links(there, b)
        return links

    def leads_to_another_group(self, link: Link) -> bool:
        return self.group_of[link[0]] != self.group_of[link[1]]
