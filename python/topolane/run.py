"""One run: a workload on a machine under a policy and a queue."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

from topolane import _engine, outages, texts
from topolane._engine import InputError
from topolane._engine import simulate as engine_simulate
from topolane.failures import Failure, failures_of
from topolane.options import option
from topolane.policy import Policy, resolve
from topolane.traffic import measured_or_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars

    from topolane._engine import Machine, OtherNetwork, Outcome, Routing, Table, Traffic, Workload
    from topolane.inference import Inferred
    from topolane.outages import Outage


INFERRED = {"held": ("recorded",), "capacity": ("recorded", "scattered"), "order": ("recorded",)}
"""What can be inferred, and how."""


@dataclasses.dataclass(frozen=True)
class Network:
    """How the jobs of a run share the network."""

    model: str = option(
        "congestion",
        "Let jobs slow each other down on shared links, by this model: congestion, max-min, max-min-flows or full.",
        flag="--network",
    )
    routing: str | Routing = option(
        "default",
        "Routing: d-mod-k, s-mod-k, random or adaptive on a tree; minimal, minimal-hashed, valiant or "
        "'valiant(fraction=F)' on a dragonfly; dimension-order on a torus; minimal or dimension-order on a HyperX; "
        "or a file of forwarding tables (opensm-lfts.dump, dump_fts). default: the first of these for the machine.",
    )
    """In a program also the ways themselves (`topolane.routes` reads them)."""
    communication: float = option(
        0.3, "Part of its run time that a job communicates when it runs alone.", flag="--comm-fraction"
    )
    patterns: tuple[str | tuple[str, Traffic], ...] = option(
        ("stencil4d", "unstructured3d", "pairs", "suba2a"),
        "Traffic of the jobs; each job draws one. Patterns (`topolane patterns` lists them) or traffic files, such as "
        "`topolane mpi run` writes, separated by commas.",
    )
    """By default the four of the SC'18 study. In a program also a name with its matrix."""
    kill_at_walltime: bool = option(
        False, "End a job at its walltime, even if it would have ended earlier without contention."
    )
    cores_per_node: str | None = None
    """How many cores of each node a job takes, chosen at submission: auto, or fixed:k; None: all."""

    def read(self) -> Network:
        """The network with the matrices of files in place of their names. Raises InputError for a bad file."""
        return dataclasses.replace(
            self,
            patterns=tuple(
                measured_or_named(pattern) if isinstance(pattern, str) else pattern
                for pattern in self.patterns
            ),
        )


@dataclasses.dataclass(frozen=True)
class Defrag:
    """Moves of running jobs, by checkpoint, to make room for one that enough nodes are free for."""

    most: int = 3
    """Jobs moved for one that starts, at most."""
    per_start: float = 0.05
    """Moves for every job started, at most."""
    pause: float = 10.0
    """Seconds for which a moved job stops, in addition to copying its memory over its nodes' links."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings:
    """How a workload is run on a machine: the keyword arguments of `simulate`, the options of the command line.

    The engine reads the same object, once `simulate` has put what files say in place of their names.
    """

    policy: str | Policy = option(
        "first-fit", "Policy: a name (`topolane policies` lists them), or module:Class."
    )
    """In a program also an object. The policy `recorded` replays the log's node lists and start times."""
    queue: str = option(
        "easy",
        f"Queue discipline: {', '.join(name for name, _ in _engine.queues())} (`topolane policies` describes them).",
    )
    queue_config: str | tuple[str, str] | None = option(
        None,
        "Priorities, limits, partitions and so on of the queue slurm, as JSON [default: LOG-slurm.json next to the log, if it "
        "is there].",
    )
    """In a program also a name and the text itself."""
    scenario: str = option("none", "Speed-up of isolated jobs: none, 5, 10, 20 (per cent), v1, v2.")
    """The cut in run time that isolation brings; it applies only under a policy that isolates."""
    seed: int = option(0, "Seed of all random draws.")
    default_walltime: float | None = option(
        None, "Walltime in seconds of jobs that have none [default: their run time]."
    )
    min_bandwidth: float | None = option(
        None,
        "Minimum share of full bandwidth, above 0 and up to 1, that jobs accept on dedicated links [default: 1].",
    )
    """Only policies that give dedicated links use it."""
    within: str | None = option(
        None,
        "Where each job is to lie, for kueue-tas: unconstrained, preferred:LEVEL or required:LEVEL; LEVEL is node, leaf, "
        "pod, domain or a number [default: preferred, in a domain or else under a leaf switch].",
    )
    """Only policies that ask every job use it."""
    segment: int | None = option(
        None,
        "Nodes of each part of a job that must lie in one domain (or under one leaf switch), for all jobs [default: as the "
        "workload says; of others, a job lies in one domain if one is large enough].",
    )
    """Only policies that know domains use it."""
    defrag: Defrag | None = option(
        None,
        "Move up to three running jobs at a time to make room for a job that is refused because of links. MOVES limits "
        "the mean number of moves for each started job (0.05: one for twenty) [default: no moves].",
    )
    outages: str | Sequence[Outage] | None = option(
        None,
        "Links and switches that fail, one per line: name,from,until (seconds, or empty). Running jobs on them are "
        "listed; no job is placed on them until they are back.",
    )
    """In a program also the outages themselves (`topolane.outages.read`)."""
    failures: str | Sequence[Failure] | None = option(
        None,
        "Nodes that fail: none; RATE,HOURS (failures of a node in a day, mean hours until it is back); or a CSV file with "
        "the columns node,from,until in seconds [default: the rate of the workload, if it has one].",
    )
    """In a program also the failures themselves (`topolane.failures.read`). Jobs on a node that fails go on with a spare one of
    its domain, or are submitted again, ahead of the others, for what is left since the last checkpoint."""
    spares: int = option(
        0,
        "Idle nodes kept back in each domain (on each leaf without domains), to take the place of a node that fails.",
    )
    checkpoint: float = option(
        1.0,
        "Hours between two checkpoints of a job: a failure costs what the job has done since the last one.",
    )
    held: str | None = option(
        None,
        "recorded: a job counts as held while, by the recorded starts, it could have started and did not. A seed other than 0 "
        "draws up to a minute more for each hold.",
    )
    capacity: str | None = option(
        None,
        "recorded: nodes that, by the recorded starts, were not used for a day or longer while jobs wanted more count as out "
        "of service; those that come back together lie side by side. scattered: each of them lies anywhere. The seed draws where.",
    )
    order: str | None = option(
        None, "recorded: jobs queue in the order of their recorded starts [default: of submission]."
    )
    network: Network | None = None
    """Lets jobs slow each other down where they share links; by default they do not."""


@dataclasses.dataclass(frozen=True)
class Run:
    """The results of a run. Times are in seconds since the workload's epoch."""

    workload: str
    machine: str
    policy: str
    queue: str
    scenario: str
    summary: dict[str, Any]
    tables: dict[str, Table]
    """By name: jobs, utilization, and links, job-links, head-waits, moves and failures if the run has them (docs/reference/outputs.md)."""
    network: str | None = None

    @functools.cached_property
    def jobs(self) -> polars.DataFrame:
        """A row for every job that ran: Batsim's columns, then slowdown, aph, ..."""
        return self._frame(self.tables["jobs"])

    @functools.cached_property
    def utilization(self) -> polars.DataFrame:
        """A row for every full minute: time, busy_nodes, waiting_jobs, utilization."""
        return self._frame(self.tables["utilization"])

    @functools.cached_property
    def links(self) -> polars.DataFrame | None:
        """A row for every direction of every link, with its mean load; None without a network."""
        return self._optional("links")

    @functools.cached_property
    def job_links(self) -> polars.DataFrame | None:
        """The links of every job in the course of time; None where no job owned any."""
        return self._optional("job-links")

    @functools.cached_property
    def head_waits(self) -> polars.DataFrame | None:
        """A row for each change of the rule by which a head of the queue waits; None where the policy has no rule for heads."""
        return self._optional("head-waits")

    @functools.cached_property
    def moves(self) -> polars.DataFrame | None:
        """A row for every move of a running job; None where none may be moved."""
        return self._optional("moves")

    @functools.cached_property
    def failures(self) -> polars.DataFrame | None:
        """A row for every failure of a node; None where none fails."""
        return self._optional("failures")

    def _optional(self, name: str) -> polars.DataFrame | None:
        table = self.tables.get(name)
        return None if table is None else self._frame(table)

    @staticmethod
    def _frame(table: Table) -> polars.DataFrame:
        import polars

        return polars.DataFrame(table)

    @property
    def facts(self) -> dict[str, Any]:
        """The settings and key figures of the run, as in `summary.json`."""
        names = ("policy", "queue", "scenario", "network", "workload", "machine")
        what = {name: getattr(self, name) for name in names}
        return what | self.summary

    @property
    def label(self) -> str:
        """A short name for tables and figures, without settings that all runs share."""
        speed_up = {"none": "", "v1": " V1", "v2": " V2"}.get(self.scenario, f" {self.scenario} %")
        return f"{self.policy}{speed_up}"


def simulate(
    workload: Workload,
    machine: Machine,
    settings: Settings = Settings(),
    *,
    progress: Callable[[float], None] | None = None,
    **changes: Any,
) -> Run:
    """Runs a workload.

    settings: how; keyword arguments are fields of `Settings` that differ from these.
    progress: called now and then with the share of jobs that have ended.

    The engine runs on a thread of its own, unless the policy is an object: an interrupt ends the call at once, and this thread after
    one pass of the queue at the latest.

    Raises InputError for an unknown name, for a speed-up together with a network, and under `recorded` for a
    log without node lists.
    """
    how = _checked(dataclasses.replace(settings, **changes), workload)
    how, skipped = _read(how, workload, machine)
    inferred = None if _replays(how) else _inferred(workload, machine, how)
    if inferred is not None and inferred.out_of_service and how.failures:
        raise InputError(
            f"--capacity {how.capacity} and failures both say which nodes are out: give --failures none, or no --capacity"
        )
    outcome = engine_simulate(
        workload if inferred is None else inferred.workload,
        machine,
        how,
        out_of_service=[] if inferred is None else inferred.out_of_service,
        progress=progress,
    )
    summary = outcome.summary()
    if how.default_walltime is not None:
        summary["default_walltime"] = how.default_walltime
    if skipped:
        summary["failures_left_out"] = skipped
    if inferred is not None:
        summary["inferred"] = inferred.facts
    if limits := machine.limits(how.policy):
        summary["limits"] = limits
    if machine.networks:
        summary["networks"] = [_on_network(outcome, machine, network) for network in machine.networks]
    return Run(
        workload=workload.name,
        machine=machine.name,
        policy=_name(how),
        queue=how.queue,
        scenario=how.scenario,
        summary=summary,
        tables=outcome.take_tables(),
        network=how.network.model if how.network else None,
    )


def _checked(how: Settings, workload: Workload) -> Settings:
    """The settings with the policy itself and the queue that it needs. Raises InputError for what does not go together."""
    rule = resolve(how.policy) if isinstance(how.policy, str) else how.policy
    if not isinstance(rule, str | Policy):
        raise InputError(f"a policy is a name or a topolane.Policy, not {rule!r}")
    if how.network and how.scenario != "none":
        raise InputError("with a network no speed-up is assumed: the scenario can only be none")
    how = dataclasses.replace(how, policy=rule)
    if _name(how) != "recorded":
        return how
    if not workload.names_nodes:
        raise InputError(
            f"workload {workload.name} names no nodes, so none can be replayed; what changes widths or "
            "submissions (--nodes-x, --load, --squeeze) takes them away"
        )
    return dataclasses.replace(how, queue="recorded")


def _name(how: Settings) -> str:
    return how.policy if isinstance(how.policy, str) else how.policy.name


def _replays(how: Settings) -> bool:
    """Whether jobs start when the records say."""
    return "recorded" in (_name(how), how.queue)


def _read(how: Settings, workload: Workload, machine: Machine) -> tuple[Settings, int]:
    """The settings with what files say in place of their names, and how many failures of a file are skipped."""
    cut = outages.read(how.outages, machine) if isinstance(how.outages, str) else how.outages
    failed, skipped = how.failures, 0
    if _replays(how):
        if failed not in (None, "none") or how.spares:
            raise InputError("a replay of recorded starts has no failures and no spare nodes")
        failed = ()
    elif failed is None or isinstance(failed, str):
        failed, skipped = failures_of(failed, workload, machine, how.seed)
    read = dataclasses.replace(
        how,
        outages=cut,
        failures=failed,
        network=how.network and how.network.read(),
        queue_config=_queue_config(how.queue_config, how.queue),
    )
    return read, skipped


def _inferred(workload: Workload, machine: Machine, how: Settings) -> Inferred | None:
    """What is to be inferred from the recorded starts; None if nothing is."""
    asked = {"held": how.held, "capacity": how.capacity, "order": how.order}
    for name, source in asked.items():
        if source not in (None, *INFERRED[name]):
            raise InputError(f"--{name} {source}: it can only be inferred as {' or '.join(INFERRED[name])}")
    if not any(asked.values()):
        return None
    from topolane.inference import infer

    return infer(
        workload,
        machine,
        **{name: source is not None for name, source in asked.items()},
        scattered=how.capacity == "scattered",
        default_walltime=how.default_walltime,
        seed=how.seed,
    )


def _queue_config(file: str | tuple[str, str] | None, queue: str) -> tuple[str, str] | None:
    """The name and the text of the configuration, for the queue that reads one."""
    if file is None or queue != "slurm":
        return None
    if not isinstance(file, str):
        return file
    return file, texts.decoded(texts.unzipped(texts.read_bytes(file), file), file)


def _on_network(outcome: Outcome, machine: Machine, network: OtherNetwork) -> dict[str, Any]:
    """What the jobs of a run do on another network of the machine."""
    shared, _, mean = outcome.on_network(machine, network)
    return {
        "name": network.name,
        "servers": len(network.servers),
        "jobs_sharing_links": sum(links > 0 for links in shared),
        "mean_bandwidth_alone": mean,
    }
