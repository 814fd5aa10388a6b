"""Why a group waits: what the scheduler says of its pods, in the words of `topolane slurm`."""

from __future__ import annotations

import dataclasses
import re

from topolane.cluster.decided import REFUSALS
from topolane.kubernetes.inspection import PodGroup

UNABLE = "the engine cannot answer"
"""What topolane-scheduler says of a group that waits for that."""


@dataclasses.dataclass(frozen=True)
class GroupWaitReason:
    """Why a group waits."""

    kind: str | None
    """The kind of the policy's refusal; None if no policy refused it."""
    words: str
    """For a table."""
    sentence: str
    """The scheduler's own, without what kube-scheduler puts around it; empty if it said nothing."""
    in_the_way: tuple[str, ...] = ()
    """`r0: default/a`, a group of nodes each."""
    since: float | None = None
    """When the scheduler said so."""


def wait_reason(group: PodGroup) -> GroupWaitReason:
    """Why a group waits, by the newest word on one of its pods without a node. Earlier pods have less detailed messages."""
    waiting = [pod for pod in group.pods if not pod.node]
    if waiting and all(pod.is_gated for pod in waiting):
        return GroupWaitReason(None, "its pods have scheduling gates", "")
    said = [pod for pod in waiting if pod.why]
    if not said:
        few = len(group.pods) < group.size
        return GroupWaitReason(None, _count(group) if few else "the scheduler has not looked at it yet", "")
    last = max(said, key=lambda pod: (group.short in pod.why, _is_of_all(pod.why), pod.refused or 0.0))
    text = _own(last.why, group.short)
    kind = _kind(text)
    if kind is None:
        return GroupWaitReason(
            None, text.removeprefix(f"group {group.short} ").lstrip(": "), text, since=last.refused
        )
    numbers = re.search(re.escape(REFUSALS[kind]) + r" \(([^()]*)\)", text)
    way = tuple(
        one.removeprefix("in the way at ") for one in text.split("; ") if one.startswith("in the way at ")
    )
    words = REFUSALS[kind] + (f": {numbers[1]}" if numbers else "")
    return GroupWaitReason(kind, words, text, way, last.refused)


def _is_of_all(text: str) -> bool:
    """Whether a sentence is about a group whose pods are all there."""
    return UNABLE in text or _kind(text) is not None


def _kind(text: str) -> str | None:
    return next((kind for kind, words in REFUSALS.items() if f" and {words}" in text), None)


def _count(group: PodGroup) -> str:
    return f"it has {len(group.pods)} of its {group.size} pods"


def _own(message: str, name: str) -> str:
    """The plugin's sentence in a message of kube-scheduler; else all of the message."""
    at = message.find(f"group {name}")
    # After the plugin's sentence, kube-scheduler adds what else it tried.
    text = message.partition(" preemption: ")[0] if at < 0 else message[at:].partition(". ")[0]
    return text.strip().rstrip(".")
