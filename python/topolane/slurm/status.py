"""What runs, what waits and why, at one moment: the rows that `topolane slurm status` prints."""

from __future__ import annotations

import dataclasses

from topolane.live.links import Links
from topolane.slurm.forecast import forecast
from topolane.slurm.look import Look
from topolane.slurm.records import Job
from topolane.slurm.usage import NodeCounts, count, holding
from topolane.slurm.waits import waits


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
    """1 where it lies in one leaf (T1), 2 in one pod (T2), ..."""
    home: str
    """The lowest group that holds it."""
    may_meet: list[str]
    """Other jobs that may use the same links."""
    links: int | None
    """Cables between switches that it owns; None where the policy gives none."""
    bandwidth_share: float | None
    """Its share of full bandwidth on them; None where it owns none."""
    lent: int | None
    """Cables that it is lent beside those."""
    mean_bandwidth_share: float | None
    """The share that it has had so far, with what it was lent; None where no daemon has written it down."""
    start: float
    expected_end: float | None
    failed_links: list[str]
    """Links that failed while it ran on them, or may have."""


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
    """See `topolane.slurm.waits.Wait`."""
    why: str
    latest_start: float | None
    """Of the first in the queue: what it is promised."""
    expected_start: float | None


@dataclasses.dataclass(frozen=True)
class Status:
    """All of it."""

    time: float
    running: list[RunningRow]
    waiting: list[WaitingRow]
    """Those to be released, the queue in its order, then those that are not in it."""
    nodes: NodeCounts
    links_shared: int
    """Links that two jobs may use."""
    links_out: int
    """Links out of service."""
    forecast_until: float | None
    """Expected starts are known up to here; None where all that can be known are."""


def status(look: Look) -> Status:
    """The rows. `look.mirror` is at the end of the forecast afterwards."""
    snapshot, machine = look.snapshot, look.machine
    holders = {job: nodes for job, nodes in holding(snapshot, machine).items() if nodes}
    links = Links(machine, holders, {job: snapshot.jobs[job].number for job in holders}, look.owned)
    in_order = sorted(holders, key=lambda job: (snapshot.jobs[job].start, job))
    failing = look.mirror.failing
    hit = {} if failing is None else {job: failing.names(out) for job, out in failing.affected.items()}
    running = [_running(snapshot.jobs[job], holders[job], links, look, hit.get(job, [])) for job in in_order]
    why, promised = waits(look), look.promised
    asks = {identity: look.mirror.ask(identity) for identity in why}
    found = forecast(look.mirror, snapshot, look.changes, look.starts)
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
        0 if failing is None else len(failing.out),
        found.until,
    )


def _running(job: Job, nodes: list[int], links: Links, look: Look, failed: list[str]) -> RunningRow:
    level, home = links.home(nodes)
    others = sorted({other for _, jobs in links.of(job.id) for other in jobs})
    end = None if job.walltime is None else job.start + job.walltime
    own = look.owned.get(job.id)
    count = (len(own.links) if own else 0) if look.gives_links else None
    return RunningRow(
        *(job.number, job.name, job.user, ",".join(job.partitions), len(nodes), job.nodes),
        *(level, home, others),
        links=count,
        bandwidth_share=own.bandwidth_share if own else None,
        lent=None if count is None else len(own.lent) if own else 0,
        mean_bandwidth_share=own.share.mean(look.snapshot.time) if own and own.share else None,
        start=job.start,
        expected_end=end,
        failed_links=failed,
    )
