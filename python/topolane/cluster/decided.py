"""What a plug-in decided about a job: the record that the plug-ins of all hosts publish, and its one reader.

docs/reference/outputs.md lists the keys. Users of a cluster can write some of what is read here, so a record is read
whole or refused with a sentence, and costs no other record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from topolane import texts, untrusted
from topolane.cluster.view import ISOLATED, ISOLATED_GLOBAL, NONE, SHARED, UNKNOWN, Refused

STOCK = "stock"
"""The policy of jobs whose nodes the host's own scheduler chooses."""
UNPLACED = (STOCK, UNKNOWN)
"""Policies of placements that no policy of the engine chose."""
NO_ENGINE = "no-engine"
"""The kind of refusal of a job that waits because the engine cannot answer."""
REFUSALS = {
    "not-now": "does not fit now",
    "never": "never fits, even on the empty machine",
    "would-share-links": "would share links",
    "cannot-isolate": "never has links of its own, even on the empty machine",
    "no-area": "would use links of isolated jobs",
    NO_ENGINE: "needs the engine, which cannot answer",
}
"""The kinds of refusals and what they mean, said of the job."""

LONGEST_NAME = 63 + 1 + 253
"""Characters of the name of a node, a group of nodes or a job. NAMESPACE/GROUP may be the longest."""
MOST_IN_THE_WAY = 3
"""Groups of nodes in the way of a refused job that a record names, and jobs in each."""
MOST_SLOTS = 1 << 24
LAST_SECOND = 253402300799
"""The end of the year 9999."""
MOST_REVISIONS = (1 << 63) - 1
MOST_LINKS = 1 << 32
RANGE = re.compile(r"([0-9]{1,8})(?:-([0-9]{1,8}))?")


@dataclass(frozen=True, slots=True)
class Decided:
    """A record. `refused` is None of a job that has its nodes."""

    policy: str
    rule: str | None = None
    """What gave the job its policy."""
    link_use: str = SHARED
    nodes: tuple[str, ...] = ()
    """The names of its nodes in rank order, once per slot; an empty name is a slot without a node."""
    rank: int = 0
    """Of the part of the job that carries the record."""
    links: tuple[int, ...] = ()
    """Its own links between switches, by the machine's numbers."""
    share: float = 1.0
    """Its share of full bandwidth on them; while the job waits, the least share that it accepts."""
    machine: str | None = None
    """A checksum of the machine that numbers the links. A plug-in that reads its own record takes them for links of this
    machine only.
    """
    revision: int = 0
    """Of several records of a job, the one with the highest counts."""
    takes: Mapping[str, int] | None = None
    """What it takes of each node; None for whole nodes."""
    offered: tuple[int, ...] = ()
    """The nodes that the host offered a waiting job, by the machine's numbers."""
    refused: Refused | None = None


def read(text: str, most: int, nodes: int = 0) -> Decided:
    """The record in a JSON text of at most `most` characters. Raises ValueError with what is wrong with it."""
    return of(untrusted.table(text, most), nodes)


def of(said: Mapping[str, Any], nodes: int = 0) -> Decided:
    """The record of these keys. nodes: how many the machine has, if it numbers the nodes that a host offered. Raises
    ValueError with what is wrong.
    """
    policy = untrusted.word(said.get("policy"), "policy")
    share = untrusted.share(said.get("share"), "share")
    return Decided(
        policy,
        untrusted.line(said.get("rule")) or None,
        _link_use(said, policy),
        tuple(_name(node, "a node") for node in _list(said, "nodes")),
        untrusted.whole(said.get("rank", 0), "rank", 0, MOST_SLOTS),
        tuple(untrusted.whole(link, "a link", 0, MOST_LINKS - 1) for link in _list(said, "links")),
        share,
        None if said.get("machine") is None else untrusted.word(said["machine"], "machine"),
        untrusted.whole(said.get("revision") or 0, "revision", 0, MOST_REVISIONS),
        _takes(said.get("takes")),
        tuple(_numbers(said.get("offered", ""), nodes)),
        None if said.get("refusal") is None else _refused(said["refusal"], share),
    )


def _link_use(said: Mapping[str, Any], policy: str) -> str:
    use = said.get("link_use")
    if use is None:
        # Kubernetes' annotations of earlier releases. Some called what kube-scheduler chose isolated.
        is_isolated = said.get("isolated", False)
        if type(is_isolated) is not bool:
            raise ValueError("isolated is neither true nor false")
        return UNKNOWN if policy in UNPLACED else ISOLATED if is_isolated else SHARED
    uses = (ISOLATED, ISOLATED_GLOBAL, SHARED, NONE, UNKNOWN)
    if use not in uses:
        raise ValueError(f"link_use is none of {', '.join(uses)}")
    return str(use)


def _refused(said: Any, share: float) -> Refused:
    if type(said) is not dict:
        raise ValueError("refusal is no object")
    kind = untrusted.word(said.get("kind"), "kind")
    if kind not in REFUSALS:
        raise ValueError(f"kind is {kind}, which is none of {', '.join(REFUSALS)}")
    time = said.get("time")
    return Refused(
        kind,
        untrusted.whole(said.get("wanted"), "wanted", 0, MOST_SLOTS),
        None if time is None else float(untrusted.whole(time, "time", 0, LAST_SECOND)),
        share,
        untrusted.line(said.get("why")),
        tuple(map(_in_the_way, _few(said, "in_the_way"))),
    )


def _in_the_way(said: Any) -> str:
    """`r0: default/a, default/b`: a group of nodes, and the jobs that hold it."""
    if type(said) is not dict:
        raise ValueError("what is in the way is no object")
    return f"{_name(said.get('at'), 'at')}: {', '.join(_name(job, 'a job') for job in _few(said, 'jobs'))}"


def _takes(said: Any) -> dict[str, int] | None:
    if said is None:
        return None
    if type(said) is not dict:
        raise ValueError("takes is no object")
    return {_name(name, "a resource"): untrusted.whole(said[name], name, 0, MOST_REVISIONS) for name in said}


def _list(said: Mapping[str, Any], key: str) -> list[Any]:
    found = said.get(key) or []
    if type(found) is not list:
        raise ValueError(f"{key} is no list")
    return found


def _few(said: Mapping[str, Any], key: str) -> list[Any]:
    found = _list(said, key)
    if len(found) > MOST_IN_THE_WAY:
        raise ValueError(f"{key} has {len(found)} entries; the most is {MOST_IN_THE_WAY}")
    return found


def _name(name: Any, what: str) -> str:
    if type(name) is not str or untrusted.line(name, LONGEST_NAME) != name:
        raise ValueError(f"{what} is no name of up to {LONGEST_NAME} printable characters")
    return name


def _numbers(text: Any, nodes: int) -> Iterator[int]:
    """The numbers in `0-3,8-11`, ascending and below the number of nodes."""
    least = 0
    if type(text) is not str:
        raise ValueError("offered is no text")
    for part in text.split(",") if text else ():
        found = RANGE.fullmatch(part)
        low, high = (int(found[1]), int(found[2] or found[1])) if found else (0, -1)
        if not least <= low <= high < nodes:
            raise ValueError(f"{texts.shown(part)} is not ascending numbers of the {nodes} nodes")
        yield from range(low, high + 1)
        least = high + 1
