"""Many runs at once, on processes of this machine or on a Dask cluster (`cluster`). Answers may be kept in a
folder (`kept`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from topolane import failures
from topolane import policy as policies
from topolane._engine import InputError
from topolane.routes import routing
from topolane.run import Run, Settings, simulate
from topolane.sources import (
    ASSUMED_CABLES,
    BEYOND_LIMIT,
    Shape,
    machine,
    reading_notes,
    runnable,
    skipped_notes,
)
from topolane.sweep import inputs
from topolane.units import plural

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from topolane._engine import Machine, Workload
    from topolane.sweep.kept import Kept


S = TypeVar("S")
T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Task(Settings):
    """The settings and names of one run. It is small enough to send to any worker, because it names files by
    path.
    """

    machine: str
    workload: str
    shape: Shape = dataclasses.field(default_factory=Shape)
    machine_format: str | None = None
    nodes: str | None = None
    topology: str | None = None
    """The topology to use, if the machine file holds several."""
    join: str | None = None
    """A second machine file for the same nodes; see `topolane.machine`."""

    def fabric(self) -> Machine:
        """The machine, restricted to `nodes` if these are given."""
        return machine(
            self.machine, self.machine_format, nodes=self.nodes, topology=self.topology, join=self.join
        )

    def notes(self) -> list[str]:
        """Notes on what was assumed or skipped when the machine and the failures were read."""
        fabric = self.fabric()
        notes = fabric.notes
        if self.network is not None and not fabric.knows_cables:
            notes.append(ASSUMED_CABLES)
        if self.nodes is None or not isinstance(self.failures, str) or not failures.is_file(self.failures):
            return notes
        _, others = failures.read_and_count(self.failures, fabric)
        if others:
            counted = plural(others, "failure")
            notes.append(f"{self.failures}: skipped {counted} of nodes that --nodes leaves out")
        return notes

    def jobs(self) -> Workload:
        """The workload, with `shape` applied for the machine."""
        return self._jobs_on(self.fabric())

    def _jobs_on(self, fabric: Machine) -> Workload:
        return inputs.workload(self.workload, fabric.nodes, seed=self.seed, shape=self.shape)

    def log_notes(self) -> list[str]:
        """Notes on what the reader of the log skipped, changed and assumed; jobs that `--limit` skips are not
        among them.
        """
        jobs = self.jobs()
        skipped = {reason: count for reason, count in jobs.left_out.items() if reason != BEYOND_LIMIT}
        return [*reading_notes(jobs), *skipped_notes(skipped)]

    def run(self, progress: Callable[[float], None] | None = None) -> Run:
        """Runs the task in this process."""
        fabric, network = self.fabric(), self.network
        if network is not None and isinstance(network.routing, str):
            fabric, paths = routing(
                self.machine,
                network.routing,
                format=self.machine_format,
                nodes=self.nodes,
                topology=self.topology,
                join=self.join,
                seed=self.seed,
            )
            network = dataclasses.replace(network, routing=paths)
        jobs = self._jobs_on(fabric)
        runnable(self.workload, jobs)
        notes = [*reading_notes(jobs), *self._strangers(jobs, fabric)]
        run = simulate(
            jobs,
            fabric,
            self,
            network=network,
            queue_config=self.config_of_queue(),
            progress=progress,
        )
        if notes:
            run.summary["notes"] = notes
        return run

    def _strangers(self, jobs: Workload, fabric: Machine) -> list[str]:
        """A note on nodes that the log names and the machine lacks. Raises InputError if the machine has none
        of them.
        """
        named, missing = jobs.strangers(fabric)
        # The policy `recorded` needs these nodes, and itself reports which job lacks which node.
        if missing == named > 0 and self.policy != "recorded":
            raise InputError(
                f"{self.workload}: machine {fabric.name} has none of the {plural(named, 'node')} that the log names: "
                "give --machine the machine of the log, or --drop-hosts to replay its jobs on another one"
            )
        if not missing:
            return []
        return [
            f"machine {fabric.name} does not have {missing:,} of the {plural(named, 'node')} that the log names"
        ]

    def config_of_queue(self) -> str | tuple[str, str] | None:
        """The configuration of the queue slurm: the one that is named, or the one that an import wrote next to the log."""
        if self.queue_config is not None or self.queue != "slurm":
            return self.queue_config
        name = Path(self.workload).name.removesuffix(".gz")
        file = Path(self.workload).with_name(f"{Path(name).stem}-slurm.json")
        return str(file) if file.is_file() else None


def tasks_for(
    base: Task, policy_names: Sequence[str], queues: Sequence[str], scenarios: Sequence[str]
) -> list[Task]:
    """The tasks that run `base` under each policy, queue and scenario.

    A scenario speeds up isolated jobs, so policies that do not isolate run once per queue. `recorded` has its
    own order, so it runs once. With a network, the first other policy that does not isolate also runs without
    one, so that the cost of contention shows.

    Raises InputError for a speed-up together with a network, since the network determines speeds.
    """
    if base.network and any(name != "none" for name in scenarios):
        raise InputError("with a network no speed-up is assumed: --scenarios can only be none")
    tasks = []
    for name in policy_names:
        own_queues = ["recorded"] if name == "recorded" else queues
        own_scenarios = scenarios if policies.isolates(name) else ["none"]
        for queue, scenario in itertools.product(own_queues, own_scenarios):
            tasks.append(dataclasses.replace(base, policy=name, queue=queue, scenario=scenario))
    if base.network:
        ordinary = (name for name in policy_names if name != "recorded" and not policies.isolates(name))
        reference = next(ordinary, None)
        alone = [task for task in tasks if task.policy == reference]
        tasks = [dataclasses.replace(task, network=None) for task in alone] + tasks
    return tasks


def shares_bought_back(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """For each isolating run on a network: the cost of isolation and the loss of its reference to contention.

    The reference is the policy that also ran without a network. In seconds: `extra_wait`, the wait of the
    isolating policy minus that of the reference without contention; `saved_wait`, the part of the reference's
    wait that contention causes; `saved`, the reduction of wait plus run time by isolation. `share` is
    `saved_wait` over `extra_wait`, None if isolation costs no wait.
    """
    rows = []
    for run in runs:
        if run.network is None or not policies.isolates(run.policy):
            continue
        for alone in runs:
            if alone.network is not None or alone.queue != run.queue:
                continue
            with_network = next(
                other
                for other in runs
                if other.network and (other.policy, other.queue) == (alone.policy, alone.queue)
            )
            extra = run.summary["mean_wait"] - alone.summary["mean_wait"]
            saved = with_network.summary["mean_wait"] - alone.summary["mean_wait"]
            rows.append(
                {
                    "policy": run.policy,
                    "reference": alone.policy,
                    "queue": run.queue,
                    "extra_wait": extra,
                    "saved_wait": saved,
                    "share": saved / extra if extra > 0 else None,
                    "saved": with_network.summary["mean_turnaround"] - run.summary["mean_turnaround"],
                }
            )
    return rows


def figures(task: Task) -> Run:
    """The run of a task without its tables, which take most of its memory."""
    return dataclasses.replace(task.run(), tables={})


def compare(
    tasks: Sequence[Task],
    *,
    executor: str | None = None,
    workers: int | None = None,
    done: Callable[..., None] | None = None,
    kept: Kept | None = None,
) -> list[Run]:
    """Runs all tasks and returns their runs in the same order; see `over` for the rest."""
    return over(Task.run, tasks, executor=executor, workers=workers, done=done, kept=kept)


def over(
    function: Callable[[S], T],
    tasks: Sequence[S],
    *,
    executor: str | None = None,
    workers: int | None = None,
    done: Callable[..., None] | None = None,
    kept: Kept | None = None,
) -> list[T]:
    """Applies a module's function to all tasks and returns the answers in the order of the tasks.

    executor: None for processes of this machine; `dask://HOST:PORT` for the Dask scheduler there, which gets
    the content of the files that a task names; `dask://` for a Dask cluster on this machine that ends with
    the sweep.
    workers: the number of processes, by default one per core available to this process. Each imports the main
    script again, so a script must call this under `if __name__ == "__main__":`.
    done: called after each task, and once at the start with the number of kept answers.
    kept: holds the answers of earlier sweeps and stores each new answer (`kept.opened`). With `kept` or Dask,
    tasks must be of class `Task`.

    Raises InputError for a wrong name in a task, ChildProcessError if a process was killed. The first error,
    and an interrupt, end the sweep at once.
    """
    done = done or (lambda count=1: None)
    keys = [] if kept is None else [kept.key(function, task) for task in tasks]
    found: dict[int, T] = {}
    if kept is not None:
        answers = ((place, kept.answer(key)) for place, key in enumerate(keys))
        found = {place: answer for place, answer in answers if answer is not None}
        if found:
            done(len(found))
    left = [place for place in range(len(tasks)) if place not in found]
    if left:
        here = min(workers or _cores(), len(left))
        missing = [tasks[place] for place in left]
        with contextlib.closing(_answers(function, missing, executor, here)) as coming:
            for number, answer in coming:
                place = left[number]
                if kept is not None:
                    kept.add(keys[place], tasks[place], answer)
                found[place] = answer
                done()
    return [found[place] for place in range(len(tasks))]


def _cores() -> int:
    """The number of cores that this process may use; where the system says, that of its batch job or
    container.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _answers(
    function: Callable[[S], T], tasks: Sequence[S], executor: str | None, workers: int
) -> Generator[tuple[int, T], None, None]:
    """Yields each answer when it is there, with the index of its task."""
    if executor is not None:
        from topolane.sweep import cluster

        yield from cluster.answers(function, tasks, executor, workers)
    elif workers == 1:
        yield from ((place, function(task)) for place, task in enumerate(tasks))
    else:
        yield from _of_processes(function, tasks, workers)


def _of_processes(
    function: Callable[[S], T], tasks: Sequence[S], workers: int
) -> Generator[tuple[int, T], None, None]:
    import concurrent.futures
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with concurrent.futures.ProcessPoolExecutor(workers, context, _obey_parent) as pool:
        try:
            places = {pool.submit(function, task): place for place, task in enumerate(tasks)}
            for future in concurrent.futures.as_completed(list(places)):
                yield places[future], future.result()
        except BaseException as error:
            # Leaving the pool would wait for runs under way, perhaps for minutes, also after an interrupt. So
            # end them.
            for worker in set(multiprocessing.active_children()) - others:
                worker.terminate()
            if isinstance(error, concurrent.futures.process.BrokenProcessPool):
                raise ChildProcessError("a process that ran a task was killed: too little memory?") from error
            raise


def _obey_parent() -> None:
    """Lets a worker end with its parent, ignore interrupts from the terminal, and print no message if memory
    runs out.
    """
    import multiprocessing
    import threading

    from topolane import _engine

    _engine.end_without_memory(says=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
