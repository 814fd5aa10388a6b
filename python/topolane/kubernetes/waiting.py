"""Why a group waits: what the scheduler says of its pods, in the words of `topolane slurm`."""

from __future__ import annotations

import dataclasses

from topolane.cluster.decided import REFUSALS
from topolane.cluster.view import Refused
from topolane.kubernetes.inspection import PodGroup


@dataclasses.dataclass(frozen=True)
class GroupWaitReason:
    """Why a group waits."""

    words: str
    """For a table."""
    sentence: str = ""
    """The scheduler's own, without what kube-scheduler puts around it; empty if it said nothing."""
    refused: Refused | None = None
    """The scheduler's refusal; None if the group waits for something else."""


def wait_reason(group: PodGroup) -> GroupWaitReason:
    """Why a group waits, by the newest word on one of its pods without a node. Earlier pods have less detailed messages."""
    waiting = [pod for pod in group.pods if not pod.node]
    if waiting and all(pod.is_gated for pod in waiting):
        return GroupWaitReason("its pods have scheduling gates")
    last = group.described
    if last is None:
        few = len(group.pods) < group.size
        return GroupWaitReason(_count(group) if few else "the scheduler has not looked at it yet")
    text = _own(last.why, group.short)
    refused = last.said.refused if last.said else None
    if refused is None:
        return GroupWaitReason(text.removeprefix(f"group {group.short} ").lstrip(": "), text)
    words = REFUSALS[refused.kind] + (f": {refused.why}" if refused.why else "")
    return GroupWaitReason(words, text, dataclasses.replace(refused, time=last.refused))


def _count(group: PodGroup) -> str:
    return f"it has {len(group.pods)} of its {group.size} pods"


def _own(message: str, name: str) -> str:
    """The plugin's sentence in a message of kube-scheduler; else all of the message."""
    at = message.find(f"group {name}")
    # After the plugin's sentence, kube-scheduler adds what else it tried.
    text = message.partition(" preemption: ")[0] if at < 0 else message[at:].partition(". ")[0]
    return text.strip().rstrip(".")
