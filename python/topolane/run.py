"""One run: a workload on a machine under a policy and a queue."""

from __future__ import annotations

import dataclasses
import functools
import io
from typing import TYPE_CHECKING, Any

from topolane import _engine
from topolane.policy import Policy, resolve
from topolane.traffic import measured_or_named

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import polars

    from topolane._engine import Machine, Routing, Workload
    from topolane.outages import Outage


@dataclasses.dataclass(frozen=True)
class Network:
    """How the jobs of a run meet on the network."""

    model: str = "congestion"
    """Of contention: congestion, max-min, max-min-flows or full (`topolane policies`)."""
    routing: str | Routing = "d-mod-k"
    """Which way traffic goes: d-mod-k, s-mod-k, random, adaptive, or the ways themselves
    (`topolane.routes` reads them from the forwarding tables of a subnet)."""
    communication: float = 0.3
    """The part of its run time alone that a job communicates, 0 to 1."""
    patterns: tuple[str, ...] = ("stencil4d", "unstructured3d", "pairs", "suba2a")
    """Each job draws one of them, a pattern by name or a file with a matrix; by default the four of the SC'18 study."""
    kill_at_walltime: bool = False
    """Whether a job ends at its walltime though only contention has kept it so long."""
    cores_per_node: str | None = None
    """How many cores of each node a job takes, chosen at submission: auto, or fixed:k; None: all."""

    def on(self, machine: Machine, seed: int) -> _engine.Network:
        """For the engine. Raises InputError for an unknown name or a share out of range."""
        ways = self.routing
        return _engine.Network(
            machine.routing(ways, seed) if isinstance(ways, str) else ways,
            self.model,
            self.communication,
            [measured_or_named(pattern) for pattern in self.patterns],
            kill_at_walltime=self.kill_at_walltime,
            cores_per_node=self.cores_per_node,
        )


@dataclasses.dataclass(frozen=True)
class Defrag:
    """Moves of running jobs, by checkpoint, to make room for one that enough nodes are free for."""

    most: int = 3
    """Jobs moved for one that starts, at most."""
    per_start: float = 0.05
    """Moves for every job started, at most."""
    pause: float = 10.0
    """Seconds for which a moved job stands still beside the copying of its memory over its nodes' links."""


@dataclasses.dataclass(frozen=True)
class Run:
    """What a run left behind. Times are in seconds since the workload's epoch."""

    workload: str
    machine: str
    policy: str
    queue: str
    scenario: str
    summary: dict[str, Any]
    jobs_csv: bytes
    utilization_csv: bytes
    network: str | None = None
    links_csv: bytes | None = None

    @functools.cached_property
    def jobs(self) -> polars.DataFrame:
        """A row for every job that ran: Batsim's columns, then slowdown, aph, ..."""
        import polars

        # All columns by name, because a run of no jobs has no values to guess their types by.
        times = "submission_time requested_time starting_time execution_time finish_time waiting_time"
        floats = f"{times} turnaround_time stretch slowdown aph least_aph hop_bytes contention"
        whole = "requested_number_of_resources success consumed_energy links_shared"
        text = "workload_name profile final_state allocated_resources metadata pattern"
        kinds = {polars.Float64: floats, polars.Int64: whole, polars.String: text, polars.UInt64: "job_id"}
        schema = {name: kind for kind, names in kinds.items() for name in names.split()}
        return polars.read_csv(io.BytesIO(self.jobs_csv), schema_overrides=schema)

    @functools.cached_property
    def links(self) -> polars.DataFrame | None:
        """A row for every direction of every link, with its mean load; None without a network."""
        import polars

        if self.links_csv is None:
            return None
        schema = {"level": polars.String, "bandwidth": polars.Float64, "mean_load": polars.Float64}
        return polars.read_csv(io.BytesIO(self.links_csv), schema_overrides=schema)

    @functools.cached_property
    def utilization(self) -> polars.DataFrame:
        """A row for every full minute: time, busy_nodes, waiting_jobs, utilization."""
        import polars

        schema = dict.fromkeys(("time", "busy_nodes", "utilization"), polars.Float64)
        return polars.read_csv(
            io.BytesIO(self.utilization_csv), schema_overrides=schema | {"waiting_jobs": polars.Int64}
        )

    @property
    def facts(self) -> dict[str, Any]:
        """What was run, and the run in a few figures, as `summary.json` has them."""
        names = ("policy", "queue", "scenario", "network", "workload", "machine")
        what = {name: getattr(self, name) for name in names}
        return what | self.summary

    @property
    def label(self) -> str:
        """Short name for tables and figures, without what is the same for all."""
        speed_up = {"none": "", "v1": " V1", "v2": " V2"}.get(self.scenario, f" {self.scenario} %")
        return f"{self.policy}{speed_up}"


def simulate(
    workload: Workload,
    machine: Machine,
    *,
    policy: str | Policy = "first-fit",
    queue: str = "easy",
    scenario: str = "none",
    seed: int = 0,
    default_walltime: float | None = None,
    min_bandwidth: float | None = None,
    defrag: Defrag | None = None,
    network: Network | None = None,
    outages: Sequence[Outage] = (),
    progress: Callable[[float], None] | None = None,
    phi: float | None = None,
) -> Run:
    """Runs a workload.

    policy: a name (see `topolane policies`), `module:Class`, or an object. The policy `recorded`
    replays the log's node lists and start times whatever the queue.
    scenario: the cut in run time that isolation brings: none, a percentage (5, 10, 20), v1, v2;
    it applies only under a policy that isolates.
    default_walltime: seconds, for jobs without one; by default their run time.
    min_bandwidth: the minimum share of full bandwidth that jobs accept on dedicated links, above 0 and up to 1; by
    default all of it. Only policies that give dedicated links use it.
    defrag: lets up to so many running jobs be moved for one that is refused for its links.
    network: lets jobs slow each other down where they share links; by default they do not.
    outages: links that fail (`topolane.outages.read`). Nobody is placed on them meanwhile; jobs that are there run on
    as before and are listed in the summary.
    progress: called now and then with the share of jobs that have ended.
    phi: the former name of `min_bandwidth`.

    Raises InputError for an unknown name, for a speed-up beside a network, and under `recorded` for a
    log without node lists.
    """
    rule = resolve(policy) if isinstance(policy, str) else policy
    if not isinstance(rule, str | Policy):
        raise _engine.InputError(f"a policy is a name or a topolane.Policy, not {rule!r}")
    if network and scenario != "none":
        raise _engine.InputError("with a network no speed-up is assumed: the scenario can only be none")
    name = rule if isinstance(rule, str) else rule.name
    if name == "recorded":
        queue = "recorded"
        if not workload.names_nodes:
            raise _engine.InputError(
                f"workload {workload.name} names no nodes, so none can be replayed; what changes widths or "
                "submissions (--nodes-x, --load, --squeeze) takes them away"
            )
    outcome = _engine.simulate(
        workload,
        machine,
        rule,
        queue,
        scenario=scenario,
        seed=seed,
        default_walltime=default_walltime,
        min_bandwidth=phi if min_bandwidth is None else min_bandwidth,
        moving=dataclasses.astuple(defrag) if defrag else None,
        network=network.on(machine, seed) if network else None,
        outages=[(outage.cables, outage.start, outage.end) for outage in outages],
        progress=progress,
    )
    summary = outcome.summary()
    if limits := machine.limits(rule):
        summary["limits"] = limits
    return Run(
        workload=workload.name,
        machine=machine.name,
        policy=name,
        queue=queue,
        scenario=scenario,
        summary=summary,
        jobs_csv=outcome.jobs_csv(),
        utilization_csv=outcome.utilization_csv(),
        network=network.model if network else None,
        links_csv=outcome.links_csv(),
    )
