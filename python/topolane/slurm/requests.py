"""Converts a waiting job to a request for the scheduler, or says why that is not possible."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping

from topolane._engine import Machine
from topolane.live.job_request import JobRequest
from topolane.slurm.bandwidth import min_bandwidth_of
from topolane.slurm.candidates import IneligibleJobError, NodeSelector, closed_to
from topolane.slurm.comments import placed_by_daemon
from topolane.slurm.job_traffic import TrafficOfJobs
from topolane.slurm.programs import Programs
from topolane.slurm.records import Job, Snapshot


@dataclasses.dataclass(frozen=True)
class RequestSettings:
    """Settings for the conversion of jobs to requests."""

    machine: Machine
    whole_nodes: bool = True
    """Whether every job of the partitions has whole nodes."""
    programs: Programs | None = None
    """Chooses cores per node for jobs that give only their number of processes."""
    min_bandwidth: Mapping[str, float] | None = None
    """The default of each partition; None if the policy uses no minimum bandwidth share."""
    traffic: TrafficOfJobs | None = None
    """Says what jobs send; None if the policy does not look at it."""


def request_of(
    job: Job,
    snapshot: Snapshot,
    nodes: NodeSelector,
    terms: RequestSettings,
    *,
    priority: float,
    cores_of: Callable[[Job, tuple[int, ...]], int | None],
) -> JobRequest:
    """The request of `job`. `cores_of` takes the job and its candidate nodes, and returns the cores to use on
    each. Raises IneligibleJobError.
    """
    if job.unsupported_option:
        raise IneligibleJobError(f"{job.unsupported_option} is not understood here: submit without it")
    for each in job.gres:
        if each.name not in terms.machine.resources:
            raise IneligibleJobError(f"{each.option} is not understood here: submit without it")
    if job.reservation and job.reservation not in snapshot.reservations:
        raise IneligibleJobError(f"there is no reservation {job.reservation} any more")
    walltime = math.inf if job.walltime is None else job.walltime
    closed = closed_to(job, walltime, snapshot)
    candidates = nodes.of(job, closed)
    fewest, most = _node_counts(job, candidates.cores, cores_of(job, candidates.nodes))
    if job.required and not placed_by_daemon(job) and len(candidates.nodes) != fewest and not closed:
        raise IneligibleJobError(
            f"--nodelist names {len(candidates.nodes)} nodes for a job of {fewest}: name all of them, "
            "or exclude others"
        )
    if closed and len(candidates.nodes) < fewest:
        raise IneligibleJobError(
            f"with its walltime it would run into the reservation {', '.join(sorted(closed))}"
        )
    begin = job.begin
    if job.reservation:
        begin = max(begin, snapshot.reservations[job.reservation].start)
    return JobRequest(
        nodes=fewest,
        most=most,
        walltime=walltime,
        begin=begin,
        order=int(job.submit) << 26 | (job.array or job.id),
        priority=priority,
        share=None if terms.whole_nodes or job.exclusive else _share(job, fewest),
        eligible=None if len(candidates.nodes) == terms.machine.nodes else candidates.nodes,
        min_bandwidth=None if terms.min_bandwidth is None else min_bandwidth_of(job, terms.min_bandwidth),
        traffic=None if terms.traffic is None else terms.traffic.of(job),
    )


def _node_counts(job: Job, cores: int, taken: int | None) -> tuple[int, int]:
    """The fewest nodes that hold its processes, and the most that it can use."""
    per_node = max(cores // job.cpus_per_process, 1)
    if job.processes_per_node:
        per_node = min(per_node, job.processes_per_node)
    elif taken is not None:
        per_node = min(per_node, max(taken // job.cpus_per_process, 1))
    fewest = max(job.fewest_nodes, math.ceil(job.processes / per_node))
    if not job.most_nodes:
        return fewest, 0
    fewest = min(fewest, job.most_nodes)
    return fewest, job.most_nodes if job.most_nodes > fewest else 0


def _share(job: Job, nodes: int) -> dict[str, int]:
    processes = job.processes_per_node or math.ceil(job.processes / nodes)
    cores = max(processes * job.cpus_per_process, 1)
    share = {"cores": cores, "memory": memory_of(job, cores)}
    for one in job.gres:
        share[one.name] = share.get(one.name, 0) + one.count * (processes if one.per_process else 1)
    return share


def memory_of(job: Job, cores: int) -> int:
    """Bytes of memory that it takes on a node with that many cores."""
    return (job.memory_per_node if job.memory_per_cpu is None else cores * job.memory_per_cpu) or 0
