"""Running and waiting jobs at one moment: the rows that `topolane slurm status` prints."""

from __future__ import annotations

import dataclasses

from topolane.live.links import Links
from topolane.slurm.forecast import forecast
from topolane.slurm.preview import Preview
from topolane.slurm.records import Job
from topolane.slurm.usage import NodeCounts, count, holding
from topolane.slurm.wait_reasons import wait_reasons


@dataclasses.dataclass(frozen=True)
class RunningRow:
    """A job on its nodes. Times in seconds since 1970."""

    job: str
    name: str
    user: str
    partition: str
    nodes: int
    hosts: str
    level: int
    """1 if it lies in one leaf (T1), 2 if in one pod (T2), ..."""
    home: str
    """The lowest group that contains it."""
    may_meet: list[str]
    """Other jobs that may use the same links."""
    links: int | None
    """Its dedicated cables between switches; None if the policy gives none."""
    bandwidth_share: float | None
    """Its share of full bandwidth on them; None if it has none."""
    lent: int | None
    """Cables that it is lent in addition."""
    mean_bandwidth_share: float | None
    """Its mean share so far, with lent cables; None if no daemon has recorded it."""
    start: float
    expected_end: float | None
    failed_links: list[str]
    """Failed links that its traffic used, or may have used."""


@dataclasses.dataclass(frozen=True)
class WaitingRow:
    """A job that waits. Times in seconds since 1970."""

    job: str
    record: str
    name: str
    user: str
    nodes: int
    submit: float
    kind: str
    """See `topolane.slurm.wait_reasons.WaitReason`."""
    why: str
    latest_start: float | None
    """The promised start of the first job in the queue; None for other jobs."""
    expected_start: float | None


@dataclasses.dataclass(frozen=True)
class Status:
    """All rows and totals."""

    time: float
    running: list[RunningRow]
    waiting: list[WaitingRow]
    """Jobs to be released, then the queue in its order, then jobs outside the queue."""
    nodes: NodeCounts
    links_shared: int
    """Links that two jobs may use."""
    links_out: int
    """Links out of service."""
    forecast_until: float | None
    """Expected starts are known up to this time; None if the forecast is complete."""


def status(preview: Preview) -> Status:
    """The rows. This advances `preview.mirror` to the end of the forecast."""
    snapshot, machine = preview.snapshot, preview.machine
    holders = {job: nodes for job, nodes in holding(snapshot, machine).items() if nodes}
    links = Links(machine, holders, {job: snapshot.jobs[job].number for job in holders}, preview.dedicated)
    in_order = sorted(holders, key=lambda job: (snapshot.jobs[job].start, job))
    failures = preview.mirror.failures
    hit = {} if failures is None else {job: failures.names(out) for job, out in failures.affected.items()}
    running = [
        _running(snapshot.jobs[job], holders[job], links, preview, hit.get(job, [])) for job in in_order
    ]
    why, promised = wait_reasons(preview), preview.promised
    asks = {identity: preview.mirror.request(identity) for identity in why}
    found = forecast(preview.mirror, snapshot, preview.changes, preview.starts)
    waiting = []
    for identity, wait in why.items():
        ask = asks[identity]
        job, start = snapshot.jobs[identity], found.starts.get(identity)
        latest = promised[1] if promised is not None and promised[0] == identity else None
        waiting.append(
            WaitingRow(
                *(
                    job.number,
                    job.record,
                    job.name,
                    job.user,
                    ask.nodes if ask else job.fewest_nodes,
                    job.submit,
                ),
                *(wait.kind, wait.words, latest, None if start is None else start[0]),
            )
        )
    return Status(
        snapshot.time,
        running,
        waiting,
        count(snapshot, machine),
        links.shared(),
        0 if failures is None else len(failures.out),
        found.until,
    )


def _running(job: Job, nodes: list[int], links: Links, preview: Preview, failed: list[str]) -> RunningRow:
    level, home = links.home(nodes)
    others = sorted({other for _, jobs in links.of(job.id) for other in jobs})
    end = None if job.walltime is None else job.start + job.walltime
    own = preview.dedicated.get(job.id)
    count = (len(own.links) if own else 0) if preview.gives_links else None
    return RunningRow(
        *(job.number, job.name, job.user, ",".join(job.partitions), len(nodes), job.nodes),
        *(level, home, others),
        links=count,
        bandwidth_share=own.bandwidth_share if own else None,
        lent=None if count is None else len(own.lent) if own else 0,
        mean_bandwidth_share=own.share.mean(preview.snapshot.time) if own and own.share else None,
        start=job.start,
        expected_end=end,
        failed_links=failed,
    )
