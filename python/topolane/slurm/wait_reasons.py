"""Why a job waits, in a sentence: Slurm's reason, or the refusal of the plugin."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection

from topolane.cluster.decided import NO_ENGINE, REFUSALS
from topolane.cluster.explain import FOR_EVER
from topolane.cluster.view import Refused
from topolane.slurm.inspection import OURS, SlurmInspection
from topolane.slurm.records import SlurmJob
from topolane.units import plural

SLURM = {
    "": "Slurm has not looked at it yet",
    "None": "Slurm has not looked at it yet",
    "AssocGrpNodeLimit": "its account has all nodes that it may have",
    "BeginTime": "it begins later",
    "Dependency": "it waits for another job",
    "DependencyNeverSatisfied": "the job that it waits for has ended in a way that it did not want",
    "JobArrayTaskLimit": "its array runs as many tasks at once as it may",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "its user holds it",
    "Licenses": "its licences are in use",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionNodeLimit": "it asks for more nodes than its partition gives a job",
    "PartitionTimeLimit": "it asks for more time than its partition gives a job",
    "Priority": "jobs of higher priority are before it",
    "QOSMaxJobsPerUserLimit": "its user runs as many jobs under its QOS as allowed",
    "QOSMaxNodePerUserLimit": "its user has all nodes that the QOS allows",
    "ReqNodeNotAvail": "nodes that it needs are out of service or reserved",
    "Reservation": "it waits for its reservation",
    "Resources": "the nodes that it needs are not free",
}
"""What Slurm's reasons mean."""


@dataclasses.dataclass(frozen=True)
class JobWaitReason:
    """Why a job waits."""

    words: str
    refused: Refused | None = None
    """The plugin's last refusal, if that is why the job waits."""
    offered: tuple[int, ...] = ()
    """The nodes of the machine that Slurm offered then."""


def wait_reason(look: SlurmInspection, job: SlurmJob) -> JobWaitReason:
    """Why a waiting job waits. The plugin's refusal counts if Slurm looks for nodes for the job."""
    said = look.decided(job)
    if said is None or said.refused is None or job.reason not in OURS:
        return JobWaitReason(SLURM.get(job.reason, f"Slurm says {job.reason}"))
    words = refusal(said.refused, len(idle_of(look, said.offered)), len(said.offered))
    return JobWaitReason(words, said.refused, said.offered)


def idle_of(look: SlurmInspection, offered: Collection[int]) -> list[int]:
    """The nodes offered to a job that no job holds now. One that shares nodes may use others as well."""
    held = {node for nodes in look.holders.values() for node in nodes}
    return [node for node in offered if node not in held and node not in look.closed]


def refusal(refused: Refused, idle: int, offered: int) -> str:
    """A refusal in words for a table. idle: how many of the offered nodes are idle now."""
    wanted = plural(refused.wanted, "node")
    if refused.kind == NO_ENGINE:
        return f"{REFUSALS[refused.kind]}: it waits"
    if refused.kind in FOR_EVER:
        return f"{REFUSALS[refused.kind]}: {wanted} wanted"
    return f"{REFUSALS[refused.kind]}: {wanted} wanted, {idle} of {offered} offered idle"
