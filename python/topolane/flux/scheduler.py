"""The scheduler module: `flux.scheduler` of flux-core speaks Flux's protocol for schedulers (RFC 27), and the
engine decides.

Flux keeps priorities, limits, dependencies and accounts, and carries out the decisions. Nothing here may stop
the instance: a job that the engine cannot take is denied with a sentence, and after a failure of the engine
its state is rebuilt from what Flux has allocated. If that fails too, jobs start in order of priority on free
nodes, as with sched-fifo, and the log says so.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import time
from collections.abc import Callable
from typing import Any, TypeVar

from _flux._core import ffi, lib
from flux.job import JobID
from flux.kvs import KVSTxn
from flux.kvs import commit_async as kvs_commit_async
from flux.kvs import get_key_direct as kvs_get
from flux.resource import InfeasibleRequest, InsufficientResources
from flux.resource.ResourceCount import ResourceCount
from flux.resource.ResourcePool import ResourcePool
from flux.resource.Rv1Pool import Rv1Pool
from flux.scheduler import PendingJob, Scheduler

from topolane import _engine
from topolane._engine import Decision, InputError
from topolane.flux.fabric import Fabric, RankNode
from topolane.flux.requests import NodeRequest
from topolane.flux.resources import JobResources
from topolane.flux.settings import FluxSettings, JobWords, words_of

T = TypeVar("T")
NOTE = "topolane"
"""The key next to R in a job's directory. Its record keeps what R cannot express, for example the links that the
job owns.
"""
MODULE = "sched-topolane"
"""The module's name, by which `flux module stats` finds the scheduler."""


class RankPool(Rv1Pool):  # type: ignore[misc]
    """Flux's allocations, by rank and core. The ranks of a new job are set in `chosen`."""

    chosen: frozenset[int] | None = None
    """The ranks that the next allocation must use; None for any."""

    def _select_resources(self, candidates: Any, request: Any) -> Any:
        if self.chosen is not None:
            candidates = [each for each in candidates if each[0] in self.chosen]
        return super()._select_resources(candidates, request)

    def nodes(self, constraint: object = None) -> list[RankNode]:
        """The ranks that meet a constraint (RFC 31); without a constraint, all ranks."""
        return [
            RankNode(rank, info["hostname"], len(info["cores"]), len(info["gpus"]))
            for rank, info in sorted(self._ranks.items())
            if constraint is None or self._matches_constraint(rank, info, constraint)
        ]

    def are_up(self) -> dict[int, bool]:
        """For each rank, whether jobs may use it."""
        return {rank: info["up"] for rank, info in self._ranks.items()}

    def held_by(self, jobid: int) -> tuple[list[int], bool, dict[str, int]]:
        """The ranks of a job, whether it has all cores of each, and the most cores and GPUs that it has on
        one.
        """
        given = self._job_state[jobid][1]._ranks
        whole = all(of["cores"] == self._ranks[rank]["cores"] for rank, of in given.items())
        cores, gpus = (max(len(of[what]) for of in given.values()) for what in ("cores", "gpus"))
        return sorted(given), whole, {"cores": cores} | ({"gpu": gpus} if gpus else {})


class FluxPool(ResourcePool):  # type: ignore[misc]
    """A `RankPool` behind the interface that flux.scheduler expects."""

    def __init__(self, R: Any = None, log: Any = None, **options: Any) -> None:
        super().__init__(RankPool(R, log=log, **options))


class TopolaneScheduler(Scheduler):  # type: ignore[misc]
    """Answers Flux's requests for allocations, with nodes and order chosen by the engine."""

    pool_class = FluxPool
    most_failures = 100
    """After more failures than this, close to each other, the engine is not rebuilt again."""
    calm = 600.0
    """Seconds without a failure after which earlier failures no longer count."""
    _queue: list[PendingJob]

    def __init__(self, handle: Any, *words: str) -> None:
        super().__init__(handle, *words)
        self._settings = FluxSettings.taken_from(self._pending_args)
        if self.pool_class is not FluxPool:
            raise InputError("pool-class= cannot be used with Topolane's scheduler")
        self._fabric: Fabric | None = None
        self._engine: _engine.Scheduler | None = None
        self._running: dict[int, JobResources] = {}
        self._asked: dict[int, tuple[NodeRequest | None, JobWords]] = {}
        """The request of each waiting job; None in it if the ranks were not known when the job came."""
        self._apart: dict[int, frozenset[int]] = {}
        """Nodes of running jobs that the engine could not take over. No other job gets them."""
        self._annotated: tuple[int, float | None, str | None] | None = None
        """The annotated job, the start time in its annotations, and the reason why it does not start now."""
        self._unable: dict[int, str] = {}
        """Jobs that wait because the engine cannot answer, with the text of their annotations."""
        self._starting: JobResources | None = None
        """The resources of the job that is being started."""
        self._seconds, self._slowest = 0.0, 0.0
        """The engine's total seconds for all passes, and for the longest pass."""
        self._failures, self._recent_failures, self._failed_at = 0, 0, -math.inf
        # Bad input must be reported before Flux considers the module loaded.
        self._settings.check_machine()
        if (pool := self._known_ranks()) is not None:
            self._use(pool)

    def _known_ranks(self) -> RankPool | None:
        """The ranks of the instance; None while Flux still waits for some to start."""
        try:
            return RankPool(kvs_get(self.handle, "resource.R"))
        except FileNotFoundError:
            return None

    def _use(self, pool: RankPool) -> None:
        """Creates the machine of these ranks and an engine for it."""
        self._fabric = Fabric.of(pool.nodes(), self._settings.machine, pool.scheduling)
        self._engine = self._new_engine(self._fabric)

    def _acquire_resources(self) -> None:
        """Waits until Flux knows its ranks. An error here would end the instance, so jobs then start without
        the engine.
        """
        super()._acquire_resources()
        if self._fabric is not None:
            return
        try:
            self._use(self._known_ranks() or self._pool)
        except InputError as error:
            self._without_engine(str(error))
        self.resource_update()

    def _new_engine(self, fabric: Fabric) -> _engine.Scheduler:
        return _engine.Scheduler(fabric.machine, self._settings.resolved_policy(), self._settings.queue)

    @property
    def _pool(self) -> RankPool:
        pool: RankPool = self.resources.impl
        return pool

    # Events of Flux, passed to the engine.

    def _tell(self, what: Callable[[_engine.Scheduler], T]) -> T | None:
        """The engine's answer; None without an engine or after its failure. An exception must not escape,
        because the broker would end.
        """
        if self._engine is None:
            return None
        try:
            return what(self._engine)
        except BaseException as error:  # a panic of the engine is not an Exception
            if isinstance(error, (SystemExit, KeyboardInterrupt, GeneratorExit)):
                raise
            self._engine_failed(error)
            return None

    def resource_update(self) -> None:
        """Gives the engine the ranks that jobs may use; other ranks are down, drained or gone."""
        self._tell(self._serve)

    def _serve(self, engine: _engine.Scheduler) -> None:
        ranks, apart = self._pool.are_up(), frozenset().union(*self._apart.values())
        for rank, node in self._fabric.node_of.items() if self._fabric else ():
            engine.set_in_service(node, ranks.get(rank, False) and node not in apart)

    def hello(self, jobid: int, priority: int, userid: int, t_submit: float, R: Any) -> None:
        """Takes over a job that already runs."""
        super().hello(jobid, priority, userid, t_submit, R)
        if self._fabric is not None:
            self._take_over(jobid, R, self._fabric)

    def _take_over(self, jobid: int, R: Any, fabric: Fabric) -> None:
        """Adds a running job to the engine."""
        said = R.to_dict()["execution"]
        start, end = said.get("starttime", 0.0), said.get("expiration", 0.0)
        walltime = end - start if end > start else math.inf
        ranks, whole, share = self._pool.held_by(jobid)
        nodes = tuple(fabric.node_of[rank] for rank in ranks)
        runs = JobResources(nodes, start, walltime, None if whole else share)
        try:
            note = kvs_get(self.handle, _key(jobid, NOTE))
        except OSError:
            # Another scheduler started the job.
            note = None
        try:
            runs = runs if note is None else runs.recorded(note, fabric)
        except ValueError as error:
            self._warn(jobid, f"{error}: it keeps its nodes, and its links are not known")
        self._running[jobid] = runs
        refused = self._tell(lambda engine: _refused(engine, jobid, runs))
        if refused is None:
            return
        del self._running[jobid]
        self._warn(jobid, f"cannot be taken over ({refused}): its nodes get no other job until it ends")
        self._apart[jobid] = frozenset(nodes)
        self.resource_update()

    def _warn(self, jobid: int, sentence: str) -> None:
        self.log.warning(f"topolane: {JobID(jobid).f58} {sentence}")

    def alloc(
        self, request: Any, jobid: int, priority: int, userid: int, t_submit: float, jobspec: dict[str, Any]
    ) -> None:
        """Queues a job, or denies it if it could never run."""
        try:
            wanted = self.resources.parse_resource_request(jobspec)
            self.resources.check_feasibility(wanted)
            if wanted.node_count is None and wanted.nslots_max != wanted.nslots:
                # The number of slots may vary: the engine chooses nodes for the lowest number.
                wanted.slot_count = ResourceCount(wanted.nslots, wanted.nslots)
            words = JobWords.of(jobspec, self._settings)
            asked = None
            if self._fabric is not None:
                asked = NodeRequest.of(wanted, self._fabric, self._pool.nodes(wanted.constraint))
            self._asked[jobid] = asked, words
        except (InfeasibleRequest, InputError) as error:
            request.deny(str(error) or "unsatisfiable request")
            return
        except Exception as error:  # noqa: BLE001
            # A jobspec may contain anything.
            request.deny(f"cannot parse jobspec: {error}")
            return
        job = PendingJob(jobid, priority, t_submit, request, wanted)
        refused = self._submitted(job)
        if refused is not None:
            self._asked.pop(jobid, None)
            request.deny(refused)
            return
        heapq.heappush(self._queue, job)

    def _submitted(self, job: PendingJob) -> str | None:
        """Queues a new job in the engine; after a failure once more, in the rebuilt engine. Returns why the
        job is denied, or None.
        """
        for _ in range(2):
            failures = self._failures
            refused = self._tell(lambda engine: self._submit(engine, job))
            if self._failures == failures or self._engine is None:
                return refused
        return "Topolane's engine fails over this job: the log of Flux's broker says how"

    def _submit(self, engine: _engine.Scheduler, job: PendingJob) -> str | None:
        """Queues a job in the engine. Returns why it can never be placed, or None."""
        asked, words = self._asked[job.jobid]
        if asked is None:
            return None
        duration = job.resource_request.duration
        if duration <= 0 and self.resources.expiration > 0:
            duration = max(self.resources.expiration - time.time(), 1.0)
        try:
            refusal = engine.submit(
                job.jobid,
                asked.nodes,
                duration if duration > 0 else math.inf,
                most=asked.most,
                priority=float(job.priority),
                order=job.jobid,
                min_bandwidth=words.min_bandwidth or self._settings.min_bandwidth,
                share=asked.share,
                eligible=asked.eligible,
                segment=words.segment,
            )
        except InputError as error:
            return str(error)
        return None if refusal is None else str(refusal)

    def _submit_again(self, engine: _engine.Scheduler, job: PendingJob) -> None:
        """Queues a waiting job in the engine again. Denies it if the engine refuses it now, because it would
        wait for ever.
        """
        refused = self._submit(engine, job)
        if refused is not None:
            self._queue.remove(job)
            heapq.heapify(self._queue)
            del self._asked[job.jobid]
            job.request.deny(refused)

    def free(self, jobid: int, R: Any, final: bool = False) -> None:
        """Takes back resources that a job has released. The engine reuses its nodes only when the job has
        released all.
        """
        super().free(jobid, R, final)
        if final:
            self._running.pop(jobid, None)
            if self._apart.pop(jobid, None):
                self.resource_update()
            self._tell(lambda engine: engine.complete(jobid))

    def cancel(self, jobid: int) -> None:
        """Removes a cancelled job from the queue."""
        self._asked.pop(jobid, None)
        self._unable.pop(jobid, None)
        super().cancel(jobid)
        self._tell(lambda engine: engine.cancel(jobid))

    def prioritize(self, jobs: list[tuple[int, int]]) -> None:
        """Queues waiting jobs again with their new priorities."""
        super().prioritize(jobs)
        others = {jobid for jobid, _ in jobs}

        def again(engine: _engine.Scheduler) -> None:
            for job in sorted(self._queue):
                if job.jobid in others:
                    engine.cancel(job.jobid)
                    self._submit_again(engine, job)

        self._tell(again)

    def expiration(self, msg: Any, jobid: int, expiration: float) -> None:
        """Updates the time limit of a running job."""
        self.resources.update_expiration(jobid, expiration)
        if runs := self._running.get(jobid):
            walltime = expiration - runs.start if expiration > 0 else math.inf
            self._running[jobid] = dataclasses.replace(runs, walltime=walltime)
            self._tell(lambda engine: engine.set_walltime(jobid, walltime))
        self.handle.respond(msg, None)

    # Decisions of the engine, carried out by Flux.

    def schedule(self) -> None:
        """Starts the jobs that the engine starts."""
        now, began = time.time(), time.monotonic()
        decisions = self._tell(lambda engine: engine.start(now))
        took = time.monotonic() - began
        self._seconds, self._slowest = self._seconds + took, max(self._slowest, took)
        engine, fabric = self._engine, self._fabric
        if engine is None or fabric is None:
            self._in_order()
            return
        if not decisions:
            return
        waiting = {job.jobid: job for job in self._queue}
        for decision in decisions:
            if self._engine is not engine:
                # The engine was rebuilt after a failure: jobs that were not started yet wait in it.
                break
            if job := waiting.get(decision.id):
                ranks = frozenset(fabric.ranks[node] for node in decision.nodes)
                self._start(job, decision, ranks, now)
        self._queue = [job for job in self._queue if job.jobid not in self._running]
        heapq.heapify(self._queue)

    def _start(self, job: PendingJob, decision: Decision, ranks: frozenset[int], now: float) -> None:
        self._pool.chosen = ranks
        try:
            given = self.resources.alloc(job.jobid, job.resource_request)
        except (InsufficientResources, InfeasibleRequest) as error:
            # Flux counts the resources of these nodes differently. The job waits for the next pass.
            self._warn(job.jobid, f"does not start on the nodes chosen for it: {error}")
            self._tell(lambda engine: engine.complete(job.jobid))
            self._tell(lambda engine: self._submit_again(engine, job))
            return
        finally:
            self._pool.chosen = None
        asked, _ = self._asked.pop(job.jobid)
        duration = job.resource_request.duration
        runs = JobResources(
            (*decision.nodes, *decision.spare),
            now,
            duration if duration > 0 else math.inf,
            None if asked is None else asked.share,
            tuple(decision.links),
            decision.bandwidth_share,
        )
        self._running[job.jobid] = self._starting = runs
        self._answer(job, given, now, {"aph": round(decision.aph, 2)})

    def _answer(self, job: PendingJob, given: Any, now: float, more: dict[str, Any]) -> None:
        given.set_starttime(now)
        if job.resource_request.duration > 0:
            given.set_expiration(now + job.resource_request.duration)
        elif self.resources.expiration > 0:
            given.set_expiration(self.resources.expiration)
        job.request.success(given, {"sched": {"resource_summary": given.dumps()} | more})

    def alloc_success(self, msg: Any, R: dict[str, Any], annotations: Any = None) -> None:
        """Stores R and the data that R cannot express in one transaction. Then the base class answers."""
        runs, self._starting = self._starting, None
        if runs is None or self._fabric is None:
            super().alloc_success(msg, R, annotations)
            return
        jobid = msg.payload["id"]
        txn = KVSTxn(self.handle)
        txn.put(_key(jobid, "R"), R)
        txn.put(_key(jobid, NOTE), runs.record(self._fabric, self._settings.policy))
        done = kvs_commit_async(self.handle, _kvstxn=txn)
        done.then(self._alloc_commit_continuation, (msg, R, annotations))

    def forecast(self) -> None:
        """Annotates the first job of the queue with its latest start and the reason why it does not start
        now.
        """
        if self._engine is None or not self._queue:
            return
        head, promise = self._queue[0], self._tell(lambda engine: engine.reservation)
        at = promise[1] if promise and promise[0] == head.jobid and promise[1] < math.inf else None
        refusal = self._tell(lambda engine: engine.explain(head.jobid))
        promised = head.jobid, at, None if refusal is None else str(refusal)
        if promised == self._annotated:
            return
        before = self._annotated and self._annotated[0]
        self._annotated = promised
        for job in self._queue:
            if job.jobid == before != head.jobid:
                job.request.annotate({"sched": {"t_estimate": None, "reason_pending": None}})
        head.request.annotate({"sched": {"t_estimate": at, "reason_pending": promised[2]}})

    # Failures.

    def _engine_failed(self, error: BaseException) -> None:
        """Rebuilds the engine's state from what Flux has allocated. Continues without an engine if that fails
        too.
        """
        now = time.monotonic()
        if now - self._failed_at > self.calm:
            self._recent_failures = 0
        self._failed_at = now
        self._failures += 1
        self._recent_failures += 1
        self.log.error(f"topolane: the engine failed: {type(error).__name__}: {error}")
        try:
            if self._recent_failures > self.most_failures:
                raise InputError(f"the engine has failed {self._recent_failures} times")
            if self._fabric is not None:
                self._engine = self._rebuilt(self._fabric)
        except BaseException as again:  # a second panic
            if isinstance(again, (SystemExit, KeyboardInterrupt, GeneratorExit)):
                raise
            self._without_engine(str(again))
        self._request_schedule()

    def _without_engine(self, why: str) -> None:
        self._engine = None
        self.log.error(
            "topolane: jobs start in order of priority on any free nodes until the module is loaded again, but those wait that were "
            f"promised more: {why}"
        )

    def _rebuilt(self, fabric: Fabric) -> _engine.Scheduler:
        engine = self._new_engine(fabric)
        for jobid, runs in self._running.items():
            _adopted(engine, jobid, runs)
        self._serve(engine)
        for job in sorted(self._queue):
            if job.jobid not in self._running:
                self._submit_again(engine, job)
        return engine

    def _in_order(self) -> None:
        """Starts jobs without the engine, in order of priority on free nodes. A job that must not start this
        way waits, and others pass it.
        """
        waiting = []
        while self._queue:
            job = heapq.heappop(self._queue)
            if why := self._settings.why_it_waits(self._asked.get(job.jobid, (None, JobWords()))[1]):
                waiting.append(job)
                self._say_why(job, why)
                continue
            try:
                given = self.resources.alloc(job.jobid, job.resource_request)
            except InsufficientResources:
                waiting.append(job)
                break
            except InfeasibleRequest as error:
                job.request.deny(str(error) or "unsatisfiable request")
            else:
                self._answer(job, given, time.time(), {})
            self._asked.pop(job.jobid, None)
        for job in waiting:
            heapq.heappush(self._queue, job)

    def _say_why(self, job: PendingJob, why: str) -> None:
        """Writes into a job's annotations why it waits, unless they say so already."""
        if self._unable.get(job.jobid) != why:
            self._unable[job.jobid] = why
            job.request.annotate({"sched": {"t_estimate": None, "reason_pending": why}})

    def stats_get(self) -> dict[str, Any]:
        """The values that `flux module stats` shows."""
        stats: dict[str, Any] = super().stats_get()
        return stats | {
            "decides": "engine" if self._engine is not None else "order of priority",
            "settings": list(words_of(self._settings)),
            "nodes": self._fabric.machine.nodes if self._fabric else len(self._pool.nodes()),
            "notes": list(self._fabric.notes) if self._fabric else [],
            "running_jobs": len(self._running),
            "engine_seconds": self._seconds,
            "longest_pass_seconds": self._slowest,
            "engine_failures": self._failures,
        }


class SchedulerProcess(TopolaneScheduler):
    """The scheduler in a process that the broker did not start. The instance goes on when this process ends."""

    def __init__(self, handle: Any, *words: str) -> None:
        super().__init__(handle, *words)
        handle.log_set_appname(MODULE)

    def _register_handlers(self) -> None:
        self._name = MODULE
        super()._register_handlers()

    def _service_register(self, name: str) -> None:
        try:
            super()._service_register(name)
        except OSError as error:
            raise InputError(
                f"cannot offer the service {name} ({error}): remove the scheduler that is loaded first"
            ) from error

    def set_running(self) -> None:
        """Registers the service. Unlike with a module, no program waits for this process to be loaded."""
        self._service_register(MODULE)


def _adopted(engine: _engine.Scheduler, jobid: int, runs: JobResources) -> None:
    engine.adopt(
        jobid,
        runs.nodes,
        runs.start,
        runs.walltime,
        share=runs.share,
        links=runs.links,
        bandwidth_share=runs.bandwidth_share,
    )


def _refused(engine: _engine.Scheduler, jobid: int, runs: JobResources) -> str | None:
    """Adds a running job to the engine. Returns why the engine refuses it, or None."""
    try:
        _adopted(engine, jobid, runs)
    except InputError as error:
        return str(error)
    return None


def _key(jobid: int, name: str) -> str:
    """The key of a job's value in Flux's store."""
    buffer = ffi.new("char[128]")
    if lib.flux_job_kvs_key(buffer, 128, jobid, name.encode()) < 0:
        raise OSError("flux_job_kvs_key failed")
    text: str = ffi.string(buffer).decode()
    return text
