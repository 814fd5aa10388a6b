"""What a cluster knows of the jobs that ran there, as a workload for `topolane compare`."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from topolane import untrusted
from topolane._engine import Machine
from topolane.kubernetes.client import KubernetesCluster
from topolane.kubernetes.fit import held
from topolane.kubernetes.objects import GPUS, ONE, KubernetesNode, Pod
from topolane.reading import csv_text
from topolane.units import plural

JOBS = "/apis/batch/v1/jobs"
COLUMNS = ("id", "submit", "run", "nodes", "walltime", "cores", "memory", "gpus_per_node", "start", "hosts")


@dataclasses.dataclass(frozen=True)
class JobRecord:
    """A Job of the cluster. Times in seconds since 1970."""

    created: float
    limit: float | None
    """Seconds that it may run."""
    pods: int
    """How many run at a time."""


def job_records(cluster: KubernetesCluster) -> dict[str, JobRecord]:
    """The Jobs of a cluster by NAMESPACE/NAME."""
    # A Job that cannot be read has no limit here: its pods are problems of their own.
    return dict(untrusted.each(_job_record, cluster.items(JOBS), "Job", []))


def _job_record(item: Mapping[str, Any]) -> tuple[str, JobRecord]:
    meta, spec = item["metadata"], item.get("spec") or {}
    pods = [spec[key] for key in ("parallelism", "completions") if spec.get(key) is not None]
    record = JobRecord(
        untrusted.when(meta.get("creationTimestamp")) or 0.0,
        untrusted.finite(spec.get("activeDeadlineSeconds")),
        min([untrusted.whole(number, "a number of pods", 0, 2**31 - 1) for number in pods], default=1),
    )
    return f"{meta['namespace']}/{meta['name']}", record


@dataclasses.dataclass
class ExportedWorkload:
    """Jobs that ran, a row each, and what is not among them."""

    rows: list[list[Any]] = dataclasses.field(default_factory=list)
    skipped: Counter[str] = dataclasses.field(default_factory=Counter)
    """Groups and pods, by why."""
    uneven: int = 0
    """Jobs with more on some nodes than on others: counted with the most."""
    running: int = 0
    """Jobs that have not ended: counted with the time that they have run so far."""

    @property
    def csv(self) -> str:
        """As a table."""
        return csv_text(COLUMNS, ([number, *row] for number, row in enumerate(sorted(self.rows), 1)))

    @property
    def notes(self) -> list[str]:
        """What is not as it was, a sentence each."""
        found = [f"{count:,} skipped: {why}" for why, count in self.skipped.most_common()]
        if self.running:
            jobs, have = plural(self.running, "job"), "has" if self.running == 1 else "have"
            found.append(f"{jobs} {have} not ended: the time so far counts as the run time")
        if self.uneven:
            jobs = plural(self.uneven, "job")
            found.append(f"{jobs} with more on some nodes than on others: the most counts for each node")
        return found


def workload(
    pods: Sequence[Pod],
    records: Mapping[str, JobRecord],
    nodes: Mapping[str, KubernetesNode],
    machine: Machine,
    now: float,
) -> ExportedWorkload:
    """The jobs among pods that ran to their end, or run now."""
    found = ExportedWorkload()
    groups: dict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        if pod.key is None:
            found.skipped["pods of services"] += 1
        else:
            groups[pod.key].append(pod)
    for members in groups.values():
        for job in _jobs(members):
            why = _unfinished(job)
            if why is None:
                found.running += any(pod.ended is None for pod in job)
                ended = [dataclasses.replace(pod, ended=now) if pod.ended is None else pod for pod in job]
                _add(found, ended, records, nodes, machine)
            else:
                found.skipped[why] += 1
    gone = records.keys() - {pod.job for pod in pods}
    if gone:
        found.skipped["Jobs whose pods are gone"] = len(gone)
    return found


def _jobs(members: Sequence[Pod]) -> list[list[Pod]]:
    """The pods of a group without those that failed and came again. Pods that did not run at one time are jobs of their own."""
    kept = [pod for pod in members if pod.phase != "Failed"] or list(members)
    starts = [pod.placed for pod in kept if pod.placed is not None]
    ends = [pod.ended for pod in kept if pod.ended is not None]
    if len(starts) == len(ends) == len(kept) > 1 and max(starts) > min(ends):
        return [[pod] for pod in kept]
    return [kept]


def _unfinished(job: Sequence[Pod]) -> str | None:
    if all(not pod.node for pod in job):
        return "never got a node"
    if any(not pod.node for pod in job):
        return "have not got a node for each pod"
    # A pod whose end is not recorded and that does not run has no run time.
    return None if all(pod.ended is not None or pod.is_alive for pod in job) else "have no time of their end"


def _add(
    found: ExportedWorkload,
    job: Sequence[Pod],
    records: Mapping[str, JobRecord],
    nodes: Mapping[str, KubernetesNode],
    machine: Machine,
) -> None:
    record = records.get(job[0].job or "")
    submit = min(pod.created for pod in job)
    if record is not None and len(job) > 1:
        submit = min(submit, record.created)
    start = max(max(pod.placed or pod.created for pod in job), submit)
    run = max(max(pod.ended or start for pod in job) - start, 0.0)
    walltime = max(run, record.limit) if record is not None and record.limit else ""
    hosts = {pod.node for pod in job}
    known = {machine.node_named(host) for host in hosts}
    listed = machine.hostlist(sorted(node for node in known if node is not None)) if None not in known else ""
    (cores, memory, gpus), *others = of_each_node(job, nodes)
    found.uneven += bool(others)
    found.rows.append([submit, run, len(hosts), walltime, cores, memory, gpus or "", start, listed])


def of_each_node(job: Sequence[Pod], nodes: Mapping[str, KubernetesNode]) -> list[tuple[int, int, int]]:
    """Cores, bytes and GPUs that a job takes of its nodes: one row if of all the same, else the most in front."""
    rows = set()
    for host, asks in held([dataclasses.replace(pod, phase="Running") for pod in job]).items():
        cores = math.ceil(asks.get("cpu", 0) / ONE)
        if host in nodes and nodes[host].has.get("cpu"):
            cores = min(cores, nodes[host].has["cpu"] // ONE)
        gpus = sum(asks.get(name, 0) for name in GPUS) // ONE
        rows.add((max(cores, 1), asks.get("memory", 0) // ONE, gpus))
    most = (max(row[0] for row in rows), max(row[1] for row in rows), max(row[2] for row in rows))
    return [most, *sorted(rows)] if len(rows) > 1 else [most]
