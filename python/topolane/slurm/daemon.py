"""The daemon's loop: read Slurm's state, update the scheduler, release the jobs that start."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable

from topolane._engine import InputError
from topolane.live.allocation import BandwidthHistory
from topolane.live.links_file import DedicatedLinksFile
from topolane.live.log import Log
from topolane.policy import resolve
from topolane.slurm.client import Slurm, SlurmError
from topolane.slurm.comments import (
    PREFIX,
    TO_BE_PLACED,
    placed_by_daemon,
    placement_comment,
    with_user_comment,
)
from topolane.slurm.config import Config
from topolane.slurm.fabric import check_partitions, check_rights, machine_of
from topolane.slurm.metrics import Metrics
from topolane.slurm.mirror import Changes, Start
from topolane.slurm.partition_locks import claim
from topolane.slurm.records import Job, Snapshot
from topolane.slurm.routes import Routes
from topolane.slurm.setup import mirror_of

PATIENCE = 10.0
"""Seconds between two attempts to reach a Slurm that does not answer. Also the seconds between two looks at
jobs that wait for a time that only Slurm's records contain.
"""


class Daemon:
    """Decides for the partitions of one Slurm.

    dry_run: Slurm starts the jobs itself. The daemon changes nothing; it logs what it would have done and
    what Slurm does. Raises InputError, before any change, if machine, partitions or configuration do not
    match Slurm.
    """

    def __init__(self, config: Config, slurm: Slurm, log: Log, *, dry_run: bool = False) -> None:
        self.config, self.slurm, self.log, self.dry_run = config, slurm, log, dry_run
        snapshot = slurm.snapshot()
        check_partitions(config.partitions, snapshot)
        if not dry_run and config.slurmrestd.startswith("unix:"):
            check_rights(config.partitions)
        self._claimed = None if dry_run else claim(config)
        self.metrics = None if config.metrics is None else Metrics(config.metrics)
        if self.metrics is not None:
            log.listeners.append(self.metrics.heard)
        self._routes = None if config.routes is None else Routes(config, log.write)
        self._links_file = self._links_file_of(config, snapshot)
        remembered = {} if self._links_file is None else self._links_file.read()
        self.mirror = mirror_of(config, snapshot, log.write, shadow=dry_run)
        self.mirror.dedicated.update(remembered)
        machine = self.mirror.machine
        for limit in machine.limits(resolve(config.policy)):
            log.write("limit", policy=config.policy, says=limit)
        self._nodes = set(snapshot.nodes)
        self.stopping = threading.Event()
        self._clock = Clock(slurm)
        self._seen: float | None = None
        """Slurm's time at the last look; None if the next look must read everything."""
        self._has_failed = False
        """Whether an action failed in this look, so the next look tries it again even if nothing changes in
        Slurm.
        """
        self._looked = 0.0
        """Seconds that Slurm took to answer at the last look; 0 if nothing had changed."""
        self._shares: dict[int, BandwidthHistory] = {
            job: one.share for job, one in remembered.items() if one.share
        }
        """The bandwidth so far of the jobs with dedicated links."""
        self._lent = 0
        """How many links are lent."""
        self._would: dict[int, str] = {}
        """In a dry run: where jobs would have been started."""

    def run(self) -> None:
        """Runs until `stopping` is set."""
        self.log.write("started", version=self.slurm.version, dry_run=self.dry_run)
        while not self.stopping.is_set():
            begun = time.monotonic()
            pause = self.config.interval
            try:
                self.step()
                if self.metrics is not None:
                    self.metrics.reached()
            except SlurmError as error:
                self.log.write("slurm-error", error=str(error))
                self._seen = None
                pause = min(PATIENCE, 5 * pause)
                self._looked = time.monotonic() - begun
            spent = time.monotonic() - begun
            # A slow Slurm is read less often. Time for releases does not count: after many of them, nodes
            # may be free that the last look did not see.
            self.stopping.wait(max(pause - spent, self._looked if self._looked > pause else 0.0))
        self.log.write("stopped")

    def step(self) -> list[Start]:
        """Looks once and acts. Returns the jobs that it released."""
        self._looked = 0.0
        if not (self._priorities_are_due() or self._has_fabric_changed() or self._is_due()):
            return []
        looking, asked = time.perf_counter(), time.monotonic()
        snapshot = self.slurm.snapshot()
        self._clock.set(snapshot.time, asked)
        self._looked = time.monotonic() - asked
        if snapshot.nodes.keys() != self._nodes:
            # The other nodes of a job with a node outside the tree would seem free.
            raise SlurmError("the nodes of Slurm are no longer those of the topology: restart the daemon")
        self._has_failed = False
        changes = self.mirror.update(snapshot)
        self._act(changes)
        self._follow_links()
        begun = time.perf_counter()
        starts = self.mirror.decide(snapshot.time)
        seconds = time.perf_counter() - begun
        # Before a job is released: nothing that it sends goes over links of another job.
        self._keep_links(snapshot.time)
        if self.metrics is not None:
            self.metrics.looked(snapshot, self.mirror, begun - looking, len(starts), seconds, self._lent)
        for start in starts:
            self._start(start, seconds / len(starts), snapshot.time)
        self._seen = None if self._has_failed else snapshot.time
        return starts

    def _links_file_of(self, config: Config, snapshot: Snapshot) -> DedicatedLinksFile | None:
        file = config.state_file
        if file is None:
            return None
        machine = machine_of(config, snapshot) if self._routes is None else self._routes.machine
        return DedicatedLinksFile(file, machine)

    def _keep_links(self, now: float) -> None:
        """Writes the file of dedicated links, lent ones included, and the forwarding tables for them."""
        if self.dry_run:
            return
        lent = {} if self._routes is None else self.mirror.lent()
        held = {}
        for job, one in self.mirror.link_allocations().items():
            links, having = lent.get(job, ((), one.bandwidth_share))
            share = self._shares.get(job) or one.share or BandwidthHistory(now, now, having, 0.0)
            held[job] = dataclasses.replace(one, lent=links, share=share.changed(having, now))
        if self._links_file is not None:
            try:
                self._links_file.keep(held)
            except InputError as error:
                self.log.write("state-error", error=str(error))
                self._has_failed = True
        if self._routes is not None and not self._routes.keep(held):
            self._has_failed = True  # links that are lent but not in the tables are not usable
            held = {job: dataclasses.replace(one, lent=()) for job, one in held.items()}
        self._lent = sum(len(one.lent) for one in held.values())
        # A completing job may have lost its links; its recorded share stays until it has ended.
        self._shares = {
            job: share for job, share in self._shares.items() if self.mirror.holds_nodes_now(job)
        } | {
            job: one.share if one.lent else one.share.changed(one.bandwidth_share, now)
            for job, one in held.items()
            if one.share is not None
        }

    def _priorities_are_due(self) -> bool:
        """Whether Slurm has recalculated priorities; if so, reads the factors again."""
        if self.mirror.priorities is None or not self.mirror.priorities.refresh_due(self._clock.now()):
            return False
        try:
            self.mirror.priorities.refresh(self._clock.now())
        except SlurmError as error:
            self.log.write("slurm-error", error=str(error))
        return True

    def _has_fabric_changed(self) -> bool:
        return self.mirror.failures is not None and self.mirror.failures.has_changed

    def _follow_links(self) -> None:
        failures = self.mirror.failures
        if failures is None:
            return
        before = failures.out
        try:
            affected = self.mirror.follow_links()
        except (InputError, OSError) as error:
            self.log.write("fabric-error", error=str(error))
            return
        if failures.out != before:
            out, back = failures.names(failures.out - before), failures.names(before - failures.out)
            self.log.write("fabric", failed=out, back=back)
        for job, cables in sorted(affected.items()):
            self.log.write("affected", id=job, job=self.mirror.seen(job).number, links=failures.names(cables))

    def _is_due(self) -> bool:
        """Whether anything may have changed since the last look, in Slurm or because of the time."""
        if self._seen is None or self._clock.has_jumped() or self.mirror.is_overdue(self._clock.now()):
            return True
        if self.mirror.is_timed and self._clock.now() - self._seen > PATIENCE:
            return True
        begin = self.mirror.scheduler.scheduler.next_begin(self._seen)
        return (begin is not None and begin <= self._clock.now()) or self.slurm.changed(self._seen)

    def _act(self, changes: Changes) -> None:
        for job in changes.started:
            facts = {"nodes": job.nodes, "start": job.start, "submit": job.submit, "walltime": job.walltime}
            self.log.write("running", id=job.id, job=job.number, **facts)
        for identity, at in changes.ended:
            self._would.pop(identity, None)
            share = self._shares.pop(identity, None)
            had = {} if share is None else {"bandwidth_share": round(share.mean(at), 4)}
            self.log.write("ended", id=identity, at=at, **had)
            if share is not None and self.metrics is not None:
                self.metrics.ended(share.mean(at))
        told: set[str] = set()
        for job, reason in changes.ineligible:
            self.log.write("unfit", job=job.number, reason=reason)
            if job.record not in told:
                told.add(job.record)
                self._tell(job, PREFIX + reason)
        for job, reason in changes.to_hold:
            self.log.write("escaped", job=job.number, reason=reason)
            if not self.dry_run:
                self._hold(job)

    def _start(self, start: Start, seconds: float, now: float) -> None:
        job = start.job
        if self.dry_run:
            if self._would.get(job.id) != start.hosts:
                self._would[job.id] = start.hosts
                self.log.write("would-start", job=job.number, nodes=start.hosts, seconds=round(seconds, 6))
            self.mirror.withdraw_release(job.id)
            return
        given = start.decision
        own = {"links": len(given.links), "bandwidth_share": given.bandwidth_share} if given.links else {}
        self.log.write("start", job=job.number, nodes=start.hosts, seconds=round(seconds, 6), **own)
        comment = with_user_comment(placement_comment(start.hosts, as_asked=start.as_asked), job)
        try:
            self.slurm.release(job, start.hosts, len(given.nodes), comment)
        except SlurmError as error:
            self.log.write("not-released", job=job.number, error=str(error))
            self.mirror.retry_release(job.id, now)
            self._has_failed = True

    def _hold(self, job: Job) -> None:
        text, keep = with_user_comment(TO_BE_PLACED, job), bool(job.required) and not placed_by_daemon(job)
        self._try("hold", job, lambda: self.slurm.hold(job, text, keep_nodes=keep))

    def _tell(self, job: Job, text: str) -> None:
        if self.dry_run:
            return
        comment = with_user_comment(text, job)
        # A mere comment would release it (docs/reference/slurm-rest.md, section 10).
        if job.reason == "BadConstraints":
            self._try("tell", job, lambda: self.slurm.hold(job, comment, keep_nodes=True))
        else:
            self._try("tell", job, lambda: self.slurm.comment(job, comment))

    def _try(self, what: str, job: Job, action: Callable[[], None]) -> None:
        """Tries an action, which may fail if the job has changed meanwhile; the next look then sees the
        change.
        """
        try:
            action()
        except SlurmError as error:
            self._has_failed = True
            self.log.write(f"not-{what}", job=job.number, error=str(error))


class Clock:
    """Estimates Slurm's clock between two readings of it. It may differ from the local clock, and both may be
    set.
    """

    EVERY = 30.0
    """Seconds of the local clock after which Slurm's clock is read again."""
    TOLERANCE = 2.0
    """Seconds. Slurm's clock counts whole seconds."""

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        self._slurms = self._ours = self._checked = 0.0

    def set(self, slurms: float, ours: float) -> None:
        """Slurm's time at a moment of the monotonic clock."""
        self._slurms = slurms
        self._ours = self._checked = ours

    def now(self) -> float:
        """The estimate of Slurm's time."""
        return self._slurms + time.monotonic() - self._ours

    def has_jumped(self) -> bool:
        """Whether Slurm's clock differs from the estimate. Checked now and then."""
        if time.monotonic() - self._checked < self.EVERY:
            return False
        self._checked = time.monotonic()
        return abs(self._slurm.clock() - self.now()) > self.TOLERANCE
