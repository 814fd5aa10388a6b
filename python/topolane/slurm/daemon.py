"""The loop: look at Slurm, tell the scheduler, release what starts."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable

from topolane._engine import InputError
from topolane.live.held import Share
from topolane.live.log import Log
from topolane.live.state import Given
from topolane.policy import resolve
from topolane.slurm.alone import claim
from topolane.slurm.client import Slurm, SlurmError
from topolane.slurm.comments import OURS, TO_BE_PLACED, placed, placed_here, with_own
from topolane.slurm.config import Config
from topolane.slurm.fabric import check_partitions, check_rights, machine_of
from topolane.slurm.metrics import Metrics
from topolane.slurm.mirror import Changes, Start
from topolane.slurm.records import Job, Snapshot
from topolane.slurm.routes import Routes
from topolane.slurm.setup import mirror_of

PATIENCE = 10.0
"""Seconds between two attempts to reach a Slurm that does not answer, and between two looks at jobs that
wait for a time which only Slurm's records tell."""


class Daemon:
    """Decides for the partitions of one Slurm.

    dry_run: Slurm starts the jobs itself; what would have been done is written beside what it does,
    and nothing is changed. Raises InputError where machine, partitions or configuration do not go
    with what Slurm has; nothing is touched then.
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
        self._given = self._given_of(config, snapshot)
        remembered = {} if self._given is None else self._given.read()
        self.mirror = mirror_of(config, snapshot, log.write, shadow=dry_run)
        self.mirror.owned.update(remembered)
        machine = self.mirror.machine
        for limit in machine.limits(resolve(config.policy)):
            log.write("limit", policy=config.policy, says=limit)
        self._nodes = set(snapshot.nodes)
        self.stopping = threading.Event()
        self._clock = Clock(slurm)
        self._seen: float | None = None
        """Slurm's time of the last look; None when it must look anew."""
        self._has_failed = False
        """Whether something could not be done in this look: nothing need change in Slurm to try it again."""
        self._looked = 0.0
        """Seconds that Slurm took to answer at the last look; 0 where nothing had changed."""
        self._shares: dict[int, Share] = {job: one.share for job, one in remembered.items() if one.share}
        """Of the jobs that own links: what of full bandwidth they have had."""
        self._lent = 0
        """How many links are lent."""
        self._would: dict[int, str] = {}
        """In a dry run: where jobs would have been started."""

    def run(self) -> None:
        """Goes on until `stopping` is set."""
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
            # A Slurm that is slow to answer is asked less often. Releases do not count: after a long
            # row of them nodes are free that nobody has seen yet.
            self.stopping.wait(max(pause - spent, self._looked if self._looked > pause else 0.0))
        self.log.write("stopped")

    def step(self) -> list[Start]:
        """Looks once and acts; answers what was released."""
        self._looked = 0.0
        if not (self._priorities_are_due() or self._has_fabric_changed() or self._is_due()):
            return []
        looking, asked = time.perf_counter(), time.monotonic()
        snapshot = self.slurm.snapshot()
        self._clock.set(snapshot.time, asked)
        self._looked = time.monotonic() - asked
        if snapshot.nodes.keys() != self._nodes:
            # A job on a node that is not on the tree would leave its other nodes free here.
            raise SlurmError("the nodes of Slurm are no longer those of the topology: start the daemon anew")
        self._has_failed = False
        changes = self.mirror.update(snapshot)
        self._act(changes)
        self._follow_links()
        begun = time.perf_counter()
        starts = self.mirror.decide(snapshot.time)
        seconds = time.perf_counter() - begun
        # Before a job is released: nothing that it sends goes over links of another.
        self._keep_links(snapshot.time)
        if self.metrics is not None:
            self.metrics.looked(snapshot, self.mirror, begun - looking, len(starts), seconds, self._lent)
        for start in starts:
            self._start(start, seconds / len(starts), snapshot.time)
        self._seen = None if self._has_failed else snapshot.time
        return starts

    def _given_of(self, config: Config, snapshot: Snapshot) -> Given | None:
        file = config.state_file
        if file is None:
            return None
        machine = machine_of(config, snapshot) if self._routes is None else self._routes.machine
        return Given(file, machine)

    def _keep_links(self, now: float) -> None:
        """Writes down who owns which links and is lent which, and the tables that keep them there."""
        if self.dry_run:
            return
        lent = {} if self._routes is None else self.mirror.lent()
        held = {}
        for job, one in self.mirror.on_links().items():
            links, having = lent.get(job, ((), one.bandwidth_share))
            share = self._shares.get(job) or one.share or Share(now, now, having, 0.0)
            held[job] = dataclasses.replace(one, lent=links, share=share.changed(having, now))
        if self._given is not None:
            try:
                self._given.keep(held)
            except InputError as error:
                self.log.write("state-error", error=str(error))
                self._has_failed = True
        if self._routes is not None and not self._routes.keep(held):
            self._has_failed = True  # what is lent, and not in tables, nobody has
            held = {job: dataclasses.replace(one, lent=()) for job, one in held.items()}
        self._lent = sum(len(one.lent) for one in held.values())
        # Where a job has lost its links while it completes, what it had stands until it has ended.
        self._shares = {job: share for job, share in self._shares.items() if self.mirror.is_on_nodes(job)} | {
            job: one.share if one.lent else one.share.changed(one.bandwidth_share, now)
            for job, one in held.items()
            if one.share is not None
        }

    def _priorities_are_due(self) -> bool:
        """Whether Slurm has calculated priorities anew meanwhile; what they are made of is then read."""
        if self.mirror.priorities is None or not self.mirror.priorities.refresh_due(self._clock.now()):
            return False
        try:
            self.mirror.priorities.refresh(self._clock.now())
        except SlurmError as error:
            self.log.write("slurm-error", error=str(error))
        return True

    def _has_fabric_changed(self) -> bool:
        return self.mirror.failing is not None and self.mirror.failing.has_changed

    def _follow_links(self) -> None:
        failing = self.mirror.failing
        if failing is None:
            return
        before = failing.out
        try:
            affected = self.mirror.follow_links()
        except (InputError, OSError) as error:
            self.log.write("fabric-error", error=str(error))
            return
        if failing.out != before:
            out, back = failing.names(failing.out - before), failing.names(before - failing.out)
            self.log.write("fabric", failed=out, back=back)
        for job, cables in sorted(affected.items()):
            self.log.write("affected", id=job, job=self.mirror.seen(job).number, links=failing.names(cables))

    def _is_due(self) -> bool:
        """Whether anything may have changed since the last look: in Slurm, or by the clock alone."""
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
        for job, reason in changes.unfit:
            self.log.write("unfit", job=job.number, reason=reason)
            if job.record not in told:
                told.add(job.record)
                self._tell(job, OURS + reason)
        for job, reason in changes.escaped:
            self.log.write("escaped", job=job.number, reason=reason)
            if not self.dry_run:
                self._hold(job)

    def _start(self, start: Start, seconds: float, now: float) -> None:
        job = start.job
        if self.dry_run:
            if self._would.get(job.id) != start.hosts:
                self._would[job.id] = start.hosts
                self.log.write("would-start", job=job.number, nodes=start.hosts, seconds=round(seconds, 6))
            self.mirror.take_back(job.id)
            return
        given = start.decision
        own = {"links": len(given.links), "bandwidth_share": given.bandwidth_share} if given.links else {}
        self.log.write("start", job=job.number, nodes=start.hosts, seconds=round(seconds, 6), **own)
        comment = with_own(placed(start.hosts, as_asked=start.as_asked), job)
        try:
            self.slurm.release(job, start.hosts, len(given.nodes), comment)
        except SlurmError as error:
            self.log.write("not-released", job=job.number, error=str(error))
            self.mirror.not_released(job.id, now)
            self._has_failed = True

    def _hold(self, job: Job) -> None:
        text, keep = with_own(TO_BE_PLACED, job), bool(job.required) and not placed_here(job)
        self._try("hold", job, lambda: self.slurm.hold(job, text, keep_nodes=keep))

    def _tell(self, job: Job, text: str) -> None:
        if self.dry_run:
            return
        comment = with_own(text, job)
        # A mere comment would release it (docs/reference/slurm-rest.md, section 10).
        if job.reason == "BadConstraints":
            self._try("tell", job, lambda: self.slurm.hold(job, comment, keep_nodes=True))
        else:
            self._try("tell", job, lambda: self.slurm.comment(job, comment))

    def _try(self, what: str, job: Job, action: Callable[[], None]) -> None:
        """Does what may fail because the job has changed meanwhile: the next look tells."""
        try:
            action()
        except SlurmError as error:
            self._has_failed = True
            self.log.write(f"not-{what}", job=job.number, error=str(error))


class Clock:
    """Slurm's clock between two looks at it: ours may be another, and either may be set anew."""

    EVERY = 30.0
    """Seconds of our own after which Slurm's is read again."""
    TOLERANCE = 2.0
    """Slurm's counts whole seconds."""

    def __init__(self, slurm: Slurm) -> None:
        self._slurm = slurm
        self._slurms = self._ours = self._checked = 0.0

    def set(self, slurms: float, ours: float) -> None:
        """Slurm's time at a moment of the monotonic clock."""
        self._slurms = slurms
        self._ours = self._checked = ours

    def now(self) -> float:
        """Slurm's time, as far as we know."""
        return self._slurms + time.monotonic() - self._ours

    def has_jumped(self) -> bool:
        """Whether Slurm's clock is not where it should be; looked at now and then."""
        if time.monotonic() - self._checked < self.EVERY:
            return False
        self._checked = time.monotonic()
        return abs(self._slurm.clock() - self.now()) > self.TOLERANCE
