"""Every benchmark in a row: what it measures, the function that measures it, its requirements and its own
options.

`run.py` runs them by name. To add one, write a function that takes the options and returns a
`measure.Result`, and add a row here.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

OPTIMISED = ".venv/.optimised"
INSTALLED = ".venv/.test-installed"
FETCHED = "fetched-components"
FLAVOURS = ("basic", "fair-whole", "fair-shared", "qos-preemption", "partitions", "gpus")
OPENMPI = {"mpiexec.openmpi": "apt-get install openmpi-bin libopenmpi-dev"}
CORES_OF_KUBERNETES = "nodes of 8 GPUs, 8 in a rack, 4 racks in a block"
PATHS = {
    "flux": ("benches/flux", "benches/slurm", "tests/slurm", "tests/flux", "tests"),
    "gang": ("benches/gang", "tests/slurm", "tests"),
    "gpu": ("benches/gpu",),
    "kubernetes": ("benches/kubernetes", "tests/live/kubernetes", "tests/kubernetes", "tests"),
    "mpi": ("benches/mpi",),
    "nova": ("benches/nova", "tests/nova"),
    "rfold": ("benches/rfold",),
    "sites": ("benches/sites", "benches/mpi"),
    "slurm": ("benches/slurm", "tests/live/slurm", "tests/slurm", "tests"),
    "validation": ("benches/validation",),
}
"""By area: the folders from which its modules are imported, in addition to benches/. Soaks and twins judge, so they are in tests/live."""


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of one case. Its type is that of the default, or `type` if the default is None."""

    name: str
    default: Any
    help: str
    type: type | None = None
    choices: tuple[str, ...] = ()
    many: bool = False
    """Whether it takes a list of one or more values."""
    required: bool = False
    group: str = ""
    """Options of one group exclude each other."""

    @property
    def key(self) -> str:
        """The name of its attribute in the options of a case."""
        return self.name.replace("-", "_")


@dataclasses.dataclass(frozen=True)
class Case:
    """A benchmark."""

    name: str
    measures: str
    function: str
    """The function, as `module:function`."""
    options: tuple[Option, ...] = ()
    quick: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Values of its options under --quick. The function may check `options.quick` as well."""
    named: bool = False
    """Whether it runs only if its full name is given, because it takes long, or needs files or root."""
    alone: bool = False
    """Whether it needs a separate process."""
    root: bool = False
    needs: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Programs and Python modules (`import NAME`) that it needs, and how to get them."""
    builds: tuple[str, ...] = (OPTIMISED,)
    """Targets of make that are built before it runs."""

    @property
    def area(self) -> str:
        """The first part of the name."""
        return self.name.partition("/")[0]

    @property
    def process(self) -> str:
        """A key of cases that can run in one process. Modules of different areas have equal names, so areas
        need separate processes.
        """
        return self.name if self.alone else self.area


def _seed(of: str) -> Option:
    return Option("seed", 1, f"of {of}")


def _policies(default: str, of: str) -> Option:
    return Option("policies", default, f"{of}, with commas")


def _engine(name: str, measures: str, function: str, named: bool = False) -> Case:
    return Case(f"engine/{name}", measures, function, named=named)


CORES_PER_NODE = Option("cores-per-node", None, "of the log, if it counts processors", int)
ENGINE = Option("engine", None, "libtopolane.so; it is compiled if none is given", Path)


def _slurm(
    name: str, measures: str, nodes: int, *options: Option, quick: Mapping[str, Any] | None = None
) -> Case:
    return Case(
        f"slurm/{name}",
        measures,
        f"{name}:measure",
        (Option("nodes", nodes, "slurmds, a multiple of 18, or of 324 from 324 on"), ENGINE, *options),
        quick=quick or {},
        named=True,
        root=True,
        builds=(OPTIMISED, INSTALLED, FETCHED),
    )


def _kubernetes(
    name: str, measures: str, *options: Option, quick: Mapping[str, Any], named: bool = True
) -> Case:
    return Case(
        f"kubernetes/{name}",
        measures,
        f"{name}:measure",
        options,
        quick,
        named,
        builds=("kubernetes-components", OPTIMISED),
    )


def _mpi(
    name: str, measures: str, *options: Option, builds: tuple[str, ...] = (OPTIMISED,), **more: Any
) -> Case:
    return Case(f"mpi/{name}", measures, f"{name}:measure", options, builds=builds, **more)


MPIS = ("mpich", "openmpi")
ALONE = Option("alone", False, "let other programs hardly run meanwhile (root)")
NOVA = {"import nova": "pip install -e '.[nova-test]'"}
PROGRAMS = Option(
    "programs", Path("target/validation"), "directory for the compiled programs of other simulators"
)

# fmt: off
CASES = (
    _engine("start", "CPU time of the command line that does nothing else", "figures:start"),
    _engine("report", "a month compared under three policies, with the report", "figures:report"),
    _engine("august", "August of Cab under EASY and seven policies", "figures:august"),
    _engine("september", "September of Cab, with its long queue, under EASY and seven policies", "figures:september"),
    _engine("light", "100,000 jobs that hardly ever wait: jobs a second, and memory", "figures:light"),
    _engine("dedicated", "jobs on links of their own: a month, and wide jobs on a large tree", "figures:dedicated"),
    _engine("decision", "single decisions of isolated on 10,648 nodes", "figures:decision"),
    _engine("contention", "one evaluation of contention, and a month under it", "figures:contention"),
    _engine("all-to-all", "jobs with a million flows each", "figures:all_to_all"),
    _engine("atlas", "the log of LLNL's Atlas; needs --trace", "figures:atlas"),
    _engine("mapping", "mean hops of rank maps, and their time", "mapping:mapping"),
    _engine("quadratic", "quadratic assignment: the gap to the known optimum", "mapping:quadratic"),
    _engine("conservative", "two months under conservative backfilling", "figures:conservative", named=True),
    _engine("million", "a light log of a million jobs, with its report", "figures:million", named=True),
    _engine("gpu-month", "a month of GPU jobs on 5,000 nodes, and decisions there", "gpu_month:gpu_month", named=True),
    _engine("peers", "AccaSim on the jobs of Atlas; needs --trace and PyPI", "peers:peers", named=True),
    _engine("mapping-peers", "Scotch, SharedMap and KaHIP on the same rank maps", "mapping:mapping_peers", named=True),
    Case("decisions", "whether runs decide as decisions/expected.json says", "decisions:measure", (
        Option("check", False, "name the runs that differ; exit code 1 if any does", group="what"),
        Option("write", False, "write the hashes to decisions/expected.json", group="what"),
        Option("show", None, "print the decisions of the run with this key instead of its hash", str, group="what"),
        Option("only", "*", "only runs whose key matches this pattern, as '*/owned/*'"),
        Option("logs", Path("logs"), "directory of the logs"),
        Option("seed", 1, "of all that is drawn; 1 as expected"),
    )),
    Case("first-picture", "from installing the wheel to the first report, in a new environment",
        "first_picture:measure", (
        Option("wheel", Path("dist"), "the wheel, or a directory with one for this processor"),
        Option("times", 3, "how often it is measured"),
    ), quick={"times": 1}, builds=("wheel",)),
    Case("flux", "the same jobs under Flux's own schedulers and Topolane's module, on simulated nodes",
        "schedulers:measure", (
        Option("nodes", 1296, "simulated nodes, a multiple of 18, or of 324 from 324 on"),
        Option("jobs", 1000, "number of jobs, from the first of the log"),
        Option("load", 1.2, "of the machine, by the times of submission"),
        Option("minutes", 3.0, "minutes in which all jobs are submitted"),
        _policies("isolated,dedicated,first-fit", "of Topolane's module"),
        Option("queue", "easy", "of Topolane's module"),
        Option("schedulers", None, "only these, with commas, as sched-simple,topolane/isolated", str),
        Option("reloads", 0, "how often Topolane's module is loaded again meanwhile", group="broken"),
        Option("kills", 0, "run Topolane's scheduler as a process, and kill it this often", group="broken"),
        CORES_PER_NODE,
    ), quick={"nodes": 72, "jobs": 50, "minutes": 0.5}, builds=(OPTIMISED, INSTALLED)),
    Case("gang/skew", "how far apart the threads of a gang begin and stop", "switching:skew", (ALONE,)),
    Case("gang/agent", "CPU time of the agent that switches gangs", "switching:own_cpu", (ALONE,)),
    Case("gang/loss", "work lost to switching", "switching:loss", (ALONE,)),
    Case("gang/slurm", "two jobs with barriers under Slurm's own gang scheduling and under Topolane's",
        "slurm:measure", (
        ALONE,
    ), named=True, root=True),
    Case("gang/credit", "two jobs with barriers under the credit scheduler of the simulated hypervisor",
        "credit:measure", named=True),
    Case("gang/minute", "a simulated minute of 64 cores and four jobs", "minute:measure", named=True),
    Case("gang/fairness", "how evenly two equal programs share the cores under the default policy", "fairness:measure", (
        Option("runs", 4, "of each length of steps"),
    ), quick={"runs": 1}, named=True, root=True),
    Case("gang/coevp", "three equal jobs of CoEVP, the gang poster's application, under each policy of the agent",
        "coevp:measure", (
        Option("program", None, "CoEVP's LULESH/lulesh", Path, required=True),
        Option("stop", 1e-5, "simulated seconds of each job"),
        Option("runs", 3, "of each policy"),
        ALONE,
    ), quick={"runs": 1, "stop": 2e-6}, named=True, root=True, needs=OPENMPI),
    Case("gpu/inflation", "GPUs that no task can use: the inflation experiment of ATC'23", "inflation:measure", (
        Option("nodes", None, "openb's nodes, CSV", Path, required=True),
        Option("pods", None, "openb's tasks, CSV", Path, required=True),
        Option("seeds", 3, "draws of each variant"),
        Option("variants", "all", "with commas"),
    ), quick={"seeds": 1}, named=True),
    Case("gpu/segments", "what whole segments cost on NVL72 racks, by segment size", "segments:measure", (
        Option("workload", "gpu-month", "synthetic month whose jobs are drawn, if no --trace is given"),
        Option("machine", "nvl72(units=12)", "1,728 nodes by default"),
        Option("gpus-per-node", 4, "of a trace that counts only GPUs"),
        Option("load", 1.3, "work, as a part of what the machine can do"),
        Option("draws", 8, "draws of the jobs"),
        Option("count", 20_000, "jobs of a draw"),
    ), quick={"draws": 2, "count": 2000}, named=True),
    Case("inference", "whether replays with inference come close to logs with a known truth", "inference:measure", (
        Option("logs", 12, "synthetic logs"),
        Option("jobs", 8000, "jobs of each"),
        Option("seed", 5000, "of the first synthetic log"),
        Option("outages", "together", "nodes out of service", choices=("together", "scattered", "single")),
        Option("machine", "fat-tree(radix=8)", "of the log of --trace"),
        CORES_PER_NODE,
        Option("limit", None, "most jobs of the log of --trace", int),
    ), quick={"logs": 1, "jobs": 1000}),
    _kubernetes("hundred", "100 groups under the default scheduler, Kueue and topolane-scheduler",
        Option("nodes", 128, CORES_OF_KUBERNETES),
        Option("groups", 100, "groups of 1 to 24 whole nodes"),
        Option("every", 0.6, "mean seconds between arrivals"),
        Option("runs", 8.0, "mean seconds that a group runs"),
        _policies("isolated,dedicated", "of topolane-scheduler"),
        Option("systems", "default,kueue,topolane", "with commas"),
        _seed("the groups"),
        quick={"groups": 10}, named=False),
    _kubernetes("scale", "5,000 nodes and 15,000 pods: pods a second, time of decisions, memory; and Kueue's",
        Option("nodes", 5000, "nodes of 96 cores, 64 in a rack, 10 racks in a block"),
        Option("pods", 15_000, "pods, about"),
        Option("systems", "topolane,kueue", "with commas; default: no groups"),
        _policies("isolated,dedicated", "of topolane-scheduler"),
        _seed("the order of the groups"),
        quick={"nodes": 640, "pods": 1000}),
    _kubernetes("soak", "whether anything is given twice or stuck while processes of the control plane are killed",
        Option("placements", 100_000, "pods that get a node"),
        Option("minutes", 0.0, "end after this time, whatever was placed; 0: no end"),
        Option("nodes", 64, CORES_OF_KUBERNETES),
        Option("alive", 24, "groups that wait or run at once"),
        Option("every", 10.0, "mean seconds between faults; 0: none"),
        _policies("isolated,dedicated", "of groups, drawn for each"),
        _seed("groups and faults"),
        Option("keep", None, "a directory for the logs of the schedulers", Path),
        quick={"placements": 500}),
    Case("kueue", "whether kueue-tas answers as Kueue's own code", "cargo_benches:kueue", (
        Option("states", 100_000, "random states"),
        _seed("the states"),
        Option("record", None, "print this number of states with Kueue's answers instead", int),
    ), quick={"states": 1000}, needs={"cargo": "install Rust"}, builds=("target/kueue-answers",)),
    Case("least-slowdown", "least-slowdown and other policies in runs with contention", "least_slowdown:measure", (
        Option("loads", ["cab-aug", "cab-sep"], "synthetic workloads or job logs", many=True),
        Option("machine", "cab", "of all loads"),
        CORES_PER_NODE,
        Option("limit", None, "most jobs of a load", int),
        Option("jobs", None, "number of processes; one per core by default", int),
    ), quick={"limit": 200}),
    Case("dragonfly-slowdown", "what jobs on a dragonfly lose to others, by policy and routing", "dragonfly_slowdown:measure", (
        Option("machine", "theta", "a dragonfly"),
        Option("loads", ["cab-nov-3x"], "synthetic workloads or job logs", many=True),
        Option("routings", ["minimal", "valiant(fraction=0.5)"], "of the messages", many=True),
        _policies("first-fit,random,level-spread,isolated-global,isolated,least-slowdown", "to compare"),
        Option("seeds", 5, "runs of each policy with other jobs and patterns"),
        Option("limit", 2000, "most jobs of a load", int),
        Option("jobs", None, "number of processes; one per core by default", int),
    ), quick={"limit": 100, "seeds": 1}),
    Case("links", "time of decisions of policies that give jobs links of their own, on 5,488 nodes",
        "cargo_benches:links", (
        _policies("dedicated,jigsaw,isolated", "to time"),
        Option("decisions", 10_000, "of each policy"),
    ), quick={"decisions": 500}, needs={"cargo": "install Rust"}, builds=()),
    Case("making-room", "plans that make room, compared with the optimum, and their time", "making_room:measure", (
        Option("states", 10_000, "states compared with the optimum"),
        Option("more", 1_000, "states under policies that give links"),
        Option("rounds", 10, "fillings of 2,000 nodes under each policy"),
        _seed("the states"),
    ), quick={"states": 100, "more": 10, "rounds": 1}, needs={"import scipy": "it comes with the tests"},
        builds=(OPTIMISED, INSTALLED)),
    Case("rfold", "isolated on a pod of cubes compared with RFold, on a trace of its generator", "comparison:measure", (
        Option("peer", None, "a checkout of github.com/shuoshuc/RFold", Path, required=True),
        Option("peer-python", Path(sys.executable), "a Python with what RFold needs"),
        Option("rfold-trace", None, "a trace in RFold's format, in place of one that is drawn", Path),
        Option("jobs", 250, "of the trace"),
        Option("theirs", "rfold,reconfig", "RFold's policies, with commas"),
        _seed("the trace"),
    ), quick={"jobs": 40}, named=True),
    _mpi("overhead", "what watching MPI calls costs",
        Option("mpi", list(MPIS), "which MPI", choices=MPIS, many=True),
        Option("programs", None, "directory of more programs, as cg.W.2: 2 is the number of ranks", Path),
        builds=(OPTIMISED, FETCHED)),
    _mpi("delayed", "collectives over a WAN with a real delay: two levels, flat, and the least possible",
        Option("delay", 20.0, "of the WAN, one way, in ms"),
        Option("mpi", list(MPIS), "which MPI", choices=MPIS, many=True),
        Option("mode", "auto", "of the library", choices=("auto", "always")),
        Option("calls", ["barrier", "bcast", "reduce", "allreduce", "allgather"], "which calls",
            choices=("barrier", "bcast", "reduce", "allreduce", "allgather"), many=True),
        Option("bytes", [8, 16384, 65536, 262144, 1048576], "sizes of messages", many=True),
        Option("sites", ["2", "3"], "numbers of sites", choices=("2", "3"), many=True),
        Option("ranks", ["dealt", "blocks"], "placements of ranks", choices=("dealt", "blocks"), many=True),
        Option("repeats", 7, "of each call"),
        Option("idle", None, "pause 0.5 s between calls, with or without tcp_slow_start_after_idle", str,
            ("slow-start", "no-slow-start")),
        quick={"bytes": [8, 65536], "sites": ["2"], "ranks": ["dealt"], "repeats": 3}, named=True, root=True,
        builds=(OPTIMISED, FETCHED)),
    _mpi("chain", "a broadcast inside one site: a chain, and the MPI's own",
        Option("hosts", [8, 16, 32], "numbers of hosts", many=True),
        Option("each", 1, "ranks on every host, dealt"),
        Option("mpi", list(MPIS), "which MPI", choices=MPIS, many=True),
        Option("bytes", [kib << 10 for kib in (64, 96, 128, 192, 256, 448, 512, 960, 1024)], "up to 4 MiB", many=True),
        Option("repeats", 5, "of each call"),
        quick={"hosts": [8], "bytes": [65536], "repeats": 1}, named=True, root=True),
    _mpi("collectives", "collectives in two levels and flat ones under SimGrid", named=True),
    _mpi("programs", "whole MPI programs plain, watched and in two levels: results and time",
        Option("delay", None, "between the sites, one way, in ms; root only", float),
        Option("program", None, "only these programs", str, many=True),
        Option("times", 3, "runs of each way"),
        Option("limit", 600.0, "most seconds of a run"),
        quick={"program": ["xdlu", "dsimpletest", "lammps"], "times": 1}, named=True, needs=OPENMPI),
    Case("nova/weighing", "CPU time of our filter and weigher, and of Nova's own weighers", "weighing:weighing",
        needs=NOVA, builds=(OPTIMISED, INSTALLED)),
    Case("nova/optimum", "hops of VMs placed one after another, compared with the fewest possible", "optimum:optimum",
        needs=NOVA, builds=(OPTIMISED, INSTALLED)),
    Case("nova/databases", "what a request asks of Nova's databases", "databases:measure", named=True, alone=True,
        needs=NOVA, builds=(OPTIMISED, INSTALLED)),
    Case("nova/rounds", "whether groups requested of several schedulers at once share a link", "rounds:measure", (
        Option("rounds", 200, "of groups of 7, 7 and 4 servers"),
        Option("schedulers", 12, "processes"),
        Option("alone", False, "the schedulers do not share claims"),
        Option("api", None, "URL of an empty database for Nova's API; SQLite by default", str),
    ), quick={"rounds": 4, "schedulers": 4}, named=True, needs=NOVA, builds=(OPTIMISED, INSTALLED)),
    Case("serve", "the live page of 5,000 nodes: first paint, updates, and 50 viewers", "serve:measure", (
        Option("seconds", 30.0, "how long updates and viewers are measured"),
    ), quick={"seconds": 5.0},
        needs={"import selenium": "it comes with the tests", "chromium": "apt-get install chromium-driver"},
        builds=(OPTIMISED, INSTALLED, FETCHED, "page")),
    Case("sites/reporting", "the manager's CPU share while 1,000 ranks report every second", "reporting:reporting",
        needs={"import sqlalchemy": "pip install -e sites"}, builds=(OPTIMISED, INSTALLED)),
    Case("sites/choosing", "the time of a plan for 100 programs on 10 sites", "choosing:choosing",
        needs={"import sqlalchemy": "pip install -e sites"}, builds=(OPTIMISED, INSTALLED)),
    Case("sites/tunnel", "what OpenVPN between two sites costs: round trips, CPU time of a packet, TCP after a pause",
        "tunnel:measure", (
        Option("delay", 5.0, "of the WAN, one way, in ms"),
        Option("connections", 8, "at once"),
    ), named=True, root=True,
        needs={"openvpn": "apt-get install openvpn", "gcc": "apt-get install gcc",
            "import sqlalchemy": "pip install -e sites"}, builds=(OPTIMISED, INSTALLED)),
    _slurm("scale", "the plugin's time in calls, in backfill over a long queue, and starts a second", 1296,
        CORES_PER_NODE,
        Option("jobs", 5000, "jobs that wait"),
        _policies("isolated,dedicated,slurm-tree", "of the plugin"),
        Option("rounds", 2, "turns of each system"),
        Option("cycles", 2, "cycles of backfill in a turn"),
        Option("scheduler", None, "SchedulerParameters of all systems", str),
        Option("starts", 1000, "short jobs in a turn; 0: none"),
        Option("allocations", 2000, "jobs without a launch in a turn; 0: none"),
        quick={"nodes": 72, "jobs": 200, "rounds": 1, "cycles": 1, "starts": 100, "allocations": 100}),
    _slurm("soak", "whether anything is given twice in thousands of starts, with faults if wanted", 72,
        Option("starts", 10_000, "jobs that start"),
        Option("kills", 0, "kill -9 of slurmctld at random moments"),
        Option("reconfigures", 0, "scontrol reconfigure at random moments"),
        Option("restarts", 0, "orderly restarts of slurmctld at random moments"),
        Option("keep", None, "a directory for Slurm's logs if something was given twice", Path),
        _seed("the mix"),
        quick={"starts": 200}),
    _slurm("cab", "the same jobs under stock Slurm, under the plugin and in the simulator", 1296,
        CORES_PER_NODE,
        Option("jobs", 1500, "jobs, from the first of the log"),
        Option("load", 1.2, "of the machine, by the times of submission"),
        Option("minutes", 10.0, "in which all are submitted"),
        _policies("isolated", "of the plugin"),
        quick={"nodes": 72, "jobs": 50, "minutes": 1.0}),
    _slurm("block", "whether slurm-block gives the nodes that a running slurmctld with topology/block gives", 72,
        Option("layouts", 25, "random layouts of blocks"),
        Option("asks", 80, "decisions in each"),
        _seed("the random choices"),
        Option("record", None, "write the states and Slurm's answers to this file", Path),
        quick={"layouts": 1, "asks": 10}),
    _slurm("room", "room for wide jobs on a full machine: plan and apply", 72,
        Option("policy", "isolated", "of all jobs"),
        Option("jobs", 10, "wide jobs that room is made for"),
        _seed("the sizes of jobs"),
        quick={"jobs": 2}),
    Case("slurm/twin", "how close a replay comes to an hour of a real Slurm", "twin:measure", (
        Option("out", None, "run Slurm (root) and write its records to this directory", Path, group="what"),
        Option("records", None, "measure the records in this directory", Path, group="what"),
        Option("synthetic", False, "measure the plan, with the starts of queue slurm as records", group="what"),
        Option("scale", False, "import and replay a synthetic year of jobs", group="what"),
        Option("jobs", None, "jobs; 1000, or 1000000 with --scale", int),
        Option("minutes", 60.0, "how long Slurm runs"),
        Option("slurmds", 72, "nodes"),
        Option("load", 1.0, "while jobs are submitted"),
        _seed("users, QOS and all else that is drawn"),
        CORES_PER_NODE,
        Option("queues", ["easy", "slurm"], "queues of the replay", many=True),
        Option("again", None, "directory of records of a second run of the plan, measured as a replay is", Path),
        Option("single-decisions", False, "ask queue slurm about each recorded start, instead of a replay"),
        Option("shaken", 0, "replays with times that differ by a second, this many in each way"),
    ), quick={"slurmds": 24, "jobs": 60, "minutes": 4.0}, named=True, builds=(OPTIMISED, INSTALLED, FETCHED)),
    Case("slurm/flavours", "how close replays come to a real Slurm under six different rules", "flavours:measure", (
        Option("out", None, "run Slurm (root) and write its records to this directory", Path, group="what"),
        Option("records", None, "measure the records in this directory", Path, group="what"),
        Option("flavours", list(FLAVOURS), "rules of the cluster", choices=FLAVOURS, many=True),
        Option("runs", 4, "runs of each plan"),
        Option("at-once", 6, "Slurms that run at the same time"),
        _seed("jobs, users and settings"),
        Option("shaken", 0, "replays of each record with times that differ within their seconds"),
    ), quick={"flavours": ["basic"], "runs": 1}, named=True, builds=(OPTIMISED, INSTALLED, FETCHED)),
    Case("sweep", "1,024 runs over a Dask cluster on this machine: runs a second, and the same table", "sweep:measure", (
        Option("workers", "1,2", "numbers of workers, with commas"),
        Option("jobs", 300, "of each run"),
        Option("seeds", 32, "of each policy and load"),
        Option("kill", False, "kill the first worker after ten seconds"),
    ), quick={"jobs": 20, "seeds": 1}, needs={"import distributed": "pip install -e '.[dask]'"},
        builds=(OPTIMISED, INSTALLED)),
    *(
        Case(f"validation/{name}", measures, "comparisons:measure", (PROGRAMS,), builds=(OPTIMISED, FETCHED))
        for name, measures in (
            ("rates", "max-min and SimGrid: rates of flows"),
            ("dragonfly", "max-min and SimGrid's dragonfly and torus: rates of flows"),
            ("models", "congestion and max-min: slowdowns of jobs"),
            ("smpi", "congestion, max-min and an MPI program under SMPI: slowdowns of jobs"),
            ("packets", "max-min and TCP under ns-3: rates of flows"),
            ("speed-ups", "the SC'18 network study and messages under ns-3: speed-ups of isolation"),
            ("speed", "max-min and SimGrid: CPU seconds of solving, one core"),
        )
    ),
)
# fmt: on
