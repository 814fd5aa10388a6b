"""Runs thousands of starts of a random job mix under the plugin, with faults if requested, and checks that
nothing is given twice.

soak_checks.py, which shares no code with Topolane, judges Slurm's lists of running jobs, its log of ended
jobs and the plugin's file of links. The exit code is 1 if something was given twice.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import random
import select
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Self

import links_in_tree as tree
import soak_checks as checks
from client import Client, Held, Refused
from measure import Options, Result, asked, table
from slurm_sites import PREFIX, Shape, Site, System, ready, say, site
from waiting import until

RULES = {
    "pbatch": checks.Rule(checks.ISOLATED, True),
    "pparts": checks.Rule(checks.ISOLATED, False),
    "powned": checks.Rule(checks.DEDICATED, True),
    "ptree": checks.Rule(checks.OUTSIDE, True),
    "pstock": checks.Rule(checks.OUTSIDE, True),
    "pfree": checks.Rule(checks.OUTSIDE, False),
}
CONF = """\
Partition=pbatch,pparts Policy=isolated
Partition=powned Policy=dedicated
Partition=ptree Policy=slurm-tree
"""
GPUS = 4
CORES = 16
MANY = 120
"""The number of jobs that wait or run at once."""
LOOKS = 20
"""Looks per second."""
LOOKS_UNTIL_READ = 6
"""After this number of looks, a version of the file of links has been read."""
FORGOTTEN = 8.0
"""The seconds before slurmctld's end that it may forget in a crash, because it saves its state every five
seconds.
"""
MOST_SHOWN = 20


Draw = Callable[[random.Random, Shape], dict[str, object]]


def _size(draw: random.Random, shape: Shape) -> int:
    """A random job size: mostly inside a leaf, some across leaves, few across pods."""
    leaf, pod = shape.leaf, shape.leaf * shape.pod
    low, high = draw.choices(
        ((1, leaf), (leaf + 1, pod), (min(pod + 1, shape.nodes // 2), shape.nodes // 2)), (70, 25, 5)
    )[0]
    return draw.randint(low, high)


def _node(draw: random.Random, shape: Shape) -> str:
    return f"{PREFIX}{draw.randint(1, shape.nodes)}"


def _nodes_out(draw: random.Random, shape: Shape) -> str:
    first = draw.randint(1, shape.nodes - shape.leaf)
    return f"{PREFIX}[{first}-{first + draw.randint(0, shape.leaf)}]"


WHOLE = ("pbatch", "powned", "ptree", "pstock")
PARTS = ("pparts", "pfree")
MIX: tuple[tuple[str, int, tuple[str, ...], Draw], ...] = (
    ("nodes", 30, WHOLE, lambda draw, shape: {"nodes": _size(draw, shape)}),
    (
        "two leaves",
        10,
        ("powned",),
        lambda draw, shape: {"nodes": draw.randint(shape.leaf + 1, 2 * shape.leaf)},
    ),
    ("node range", 8, WHOLE, lambda draw, shape: {"nodes": f"{draw.randint(1, 4)}-{draw.randint(5, 9)}"}),
    ("tasks", 8, WHOLE, lambda draw, shape: {"tasks": draw.randint(1, 5 * CORES)}),
    ("required", 5, WHOLE, lambda draw, shape: {"nodes": draw.randint(1, 4), "w": _node(draw, shape)}),
    ("excluded", 5, WHOLE, lambda draw, shape: {"nodes": draw.randint(1, 8), "x": _nodes_out(draw, shape)}),
    ("switches", 4, WHOLE, lambda draw, shape: {"nodes": draw.randint(2, shape.leaf), "switches": 1}),
    ("contiguous", 2, WHOLE, lambda draw, shape: {"nodes": draw.randint(2, 4), "contiguous": 1}),
    (
        "array",
        4,
        WHOLE,
        lambda draw, shape: {"nodes": draw.randint(1, 4), "array": f"1-{draw.randint(2, 4)}"},
    ),
    ("GPUs on nodes", 5, WHOLE, lambda draw, shape: {"nodes": draw.randint(1, 4), "gpus_per_node": GPUS}),
    ("shared: tasks", 12, PARTS, lambda draw, shape: {"tasks": draw.randint(1, 3 * CORES)}),
    (
        "shared: tasks on nodes",
        8,
        PARTS,
        lambda draw, shape: {
            "nodes": (nodes := draw.randint(1, 5)),
            "per_node": (each := draw.randint(1, 8)),
            "tasks": nodes * each,
        },
    ),
    ("shared: GPUs", 5, PARTS, lambda draw, shape: {"gpus": draw.randint(1, 2 * GPUS)}),
    (
        "shared: GPUs on nodes",
        4,
        PARTS,
        lambda draw, shape: {"nodes": draw.randint(1, 3), "gpus_per_node": draw.randint(1, GPUS)},
    ),
)
"""Name, weight, partitions and wishes of each kind of job."""


class Findings:
    """The errors found, and the counts of what was checked."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.seen: Counter[str] = Counter()
        self._said: set[str] = set()
        self._lock = threading.Lock()

    def add(self, where: str, what: str) -> None:
        """Records an error once."""
        with self._lock:
            if what not in self._said:
                self._said.add(what)
                self.wrong.append(f"{where}: {what}")

    def count(self, what: str, times: int = 1) -> None:
        with self._lock:
            self.seen[what] += times


class Watch:
    """Watches the running Slurm: the jobs that hold nodes, and every version of the file of links."""

    def __init__(self, here: Site, findings: Findings) -> None:
        self.here, self.findings = here, findings
        self.wiring = wiring_of(here.shape)
        self.switches = tree.switches(here.up.directory / "topology.conf")
        self.without_links: list[tuple[float, list[int], str]] = []
        """The times at which dedicated jobs shared a switch while some of them had no links in the file, with
        these jobs and a sentence.
        """
        self._stop = threading.Event()
        self._entries: list[checks.Entry] = []
        self._without: dict[tuple[tuple[int, int], ...], int] = {}
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,)) for work in (self._look, self._read)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        if self._errors:
            raise RuntimeError(f"the checks stopped: {self._errors[0]}") from self._errors[0]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (OSError, RuntimeError, ValueError, KeyError) as error:
            self._errors.append(error)

    def _look(self) -> None:
        """Checks the jobs that hold nodes LOOKS times a second."""
        with self.here.client() as slurm:
            while not self._stop.wait(1 / LOOKS):
                before = self._entries
                try:
                    held = slurm.held()
                except Refused:
                    self.findings.count("looks without an answer")
                    continue
                self._judge([part_of(each) for each in held], {entry.job: entry for entry in before})

    def _judge(self, parts: list[checks.Part], owned: dict[int, checks.Entry]) -> None:
        self.findings.count("looks")
        self.findings.count("jobs seen in looks", len(parts))
        for what in checks.twice(parts, RULES):
            self.findings.add("look", what)
        ran = [tree.Ran(part.job, part.partition, part.nodes, 0, 1) for part in parts]
        wrong, allowed = checks.met(ran, self.switches, RULES, PREFIX)
        for one, other, places in wrong:
            self.findings.add("look", _pair(one, other, places))
        running = {part.job: part for part in parts if part.running}
        for one, other, places in allowed:
            pair = [running[each.job] for each in (one, other) if each.job in running]
            if RULES[one.partition].promise != checks.DEDICATED:
                self.findings.count("pairs seen that share links and may")
            elif len(pair) == 2:
                self._own_links(pair, places, owned)

    def _own_links(self, pair: list[checks.Part], places: set[str], owned: dict[int, checks.Entry]) -> None:
        """Checks that two dedicated jobs which cross the same switch each have links of their own there,
        according to the file. The file is read a moment after it is written, so a single look proves nothing.
        """
        without = [part for part in pair if not _has_links(part, owned.get(part.job))]
        if not without:
            self.findings.count("pairs seen that cross a switch, each on its own links")
            return
        key = tuple((part.job, part.restarts) for part in pair)
        self._without[key] = self._without.get(key, 0) + 1
        if self._without[key] == LOOKS_UNTIL_READ:
            jobs = " and ".join(str(part.job) for part in pair)
            names = ", ".join(str(part.job) for part in without)
            what = f"jobs {jobs} meet at {_some(places)}; the file has no links for {names} on its nodes"
            self.without_links.append((time.time(), [part.job for part in without], what))

    def _read(self) -> None:
        """Reads every version of the file of links when the kernel reports a change."""
        path = self.here.state / "topolane_links"
        with changes(self.here.state) as wait:
            while not self._stop.is_set():
                wait(0.2)
                try:
                    text = path.read_text()
                except FileNotFoundError:
                    continue
                try:
                    found = checks.entries(text)
                except ValueError as error:
                    self.findings.add("links", f"the file of links is not whole: {error}")
                    continue
                if found == self._entries:
                    continue
                self._entries = found
                self.findings.count("versions of the file of links")
                for what in checks.links_twice(found):
                    self.findings.add("links", what)
                for entry in found:
                    for what in checks.too_few(entry, self.wiring):
                        self.findings.add("links", what)


class changes:
    """Waits until a file is renamed to a name in a directory (inotify)."""

    MOVED_TO = 0x80

    def __init__(self, directory: Path) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self._directory = directory
        self._file = -1

    def __enter__(self) -> Callable[[float], None]:
        self._file = self._library.inotify_init1(os.O_CLOEXEC)
        if (
            self._file < 0
            or self._library.inotify_add_watch(self._file, bytes(self._directory), self.MOVED_TO) < 0
        ):
            raise OSError(ctypes.get_errno(), "inotify", str(self._directory))

        def wait(seconds: float) -> None:
            if select.select([self._file], [], [], seconds)[0]:
                os.read(self._file, 65536)

        return wait

    def __exit__(self, *_: object) -> None:
        os.close(self._file)


def wiring_of(shape: Shape) -> checks.Wiring:
    """The wiring that Shape.machine writes, in the checker's terms."""
    parents, cables = (2, shape.pod // 2) if shape.pod % 2 == 0 else (shape.pod, 1)
    return checks.Wiring(shape.leaf, shape.pod, shape.pods, shape.leaf, parents, cables)


def part_of(held: Held) -> checks.Part:
    """A job in the checker's terms. For a completing job, only the nodes that it still has count."""
    cores = {node: on[0] for node, on in held.on_nodes.items()}
    devices = {node: on[1] for node, on in held.on_nodes.items()}
    nodes = frozenset(tree.expanded(held.hosts))
    return checks.Part(held.job, held.partition, held.running, held.restarts, nodes, cores, devices)


def _has_links(part: checks.Part, entry: checks.Entry | None) -> bool:
    return entry is not None and part.nodes <= {f"{PREFIX}{node + 1}" for node in entry.nodes}


def _some(places: set[str]) -> str:
    return ", ".join(sorted(places)[:4])


def _pair(one: tree.Ran, other: tree.Ran, places: set[str]) -> str:
    jobs = f"jobs {one.job} ({one.partition}) and {other.job} ({other.partition})"
    return f"{jobs} meet at {_some(places)}"


@dataclasses.dataclass
class Soak:
    """Submits jobs, causes faults and waits."""

    here: Site
    slurm: Client
    watch: Watch
    findings: Findings
    options: Options
    draw: random.Random
    kills: list[float] = dataclasses.field(default_factory=list)
    kinds: Counter[str] = dataclasses.field(default_factory=Counter)
    _read: int = 0
    _ended: int = 0

    def run(self) -> None:
        """Runs until `starts` jobs have started and ended and the queue is empty."""
        faults = self._planned()
        shown = time.monotonic()
        while (ended := self.ended()) < self.options.starts:
            while faults and ended >= faults[-1][0]:
                self._fault(faults.pop()[1])
            try:
                running, completing, pending = self.slurm.running()
                self._disturb(running)
                # Refill at once what completing jobs leave.
                for _ in range(min(MANY - len(running) - completing - pending, 40)):
                    self._submit()
            except Refused as error:
                self.findings.count(f"refused: {error}")
                time.sleep(1)
            self._mend()
            time.sleep(0.1)
            if time.monotonic() > shown + 15:
                shown = time.monotonic()
                say(
                    f"{ended:,} of {self.options.starts:,} jobs have run; {len(self.findings.wrong)} violations"
                )
        for _, kind in reversed(faults):
            self._fault(kind)
        self._drain()

    def ended(self) -> int:
        """The number of ended runs of jobs."""
        if self.here.jobs_log.exists():
            with self.here.jobs_log.open("rb") as log:
                log.seek(self._read)
                new = log.read()
            self._read += len(new)
            self._ended += new.count(b"\n")
        return self._ended

    def _planned(self) -> list[tuple[int, str]]:
        """The planned faults: the number of ended jobs at which each happens, in descending order."""
        plans = (
            ("kill", self.options.kills),
            ("reconfigure", self.options.reconfigures),
            ("restart", self.options.restarts),
        )
        low, high = self.options.starts // 20, self.options.starts * 19 // 20
        faults = [(self.draw.randint(low, high), kind) for kind, count in plans for _ in range(count)]
        return sorted(faults, reverse=True)

    def _fault(self, kind: str) -> None:
        say(f"fault: {kind}")
        self.findings.count(f"faults: {kind}")
        if kind == "reconfigure":
            self.slurm.tell("reconfigure")
            return
        self.here.up.script(kind.replace("restart", "stop"), "slurmctld")
        if kind == "kill":
            self.kills.append(time.time())
        time.sleep(self.draw.random() * 2)
        self.here.up.script("start", "slurmctld")

    def _submit(self) -> None:
        kind, _, partitions, wishes = self.draw.choices(MIX, [weight for _, weight, _, _ in MIX])[0]
        wanted = wishes(self.draw, self.here.shape)
        wanted |= {
            "partition": self.draw.choice(partitions),
            "minutes": self.draw.choice((1, 1, 2, 5)),
            "seconds": self.draw.choice((0.2, 0.5, 0.5, 1, 2, 4)),
            "requeue": 1,
        }
        try:
            self.slurm.submit(**wanted)
        except Refused as error:
            self.findings.count(f"refused at submission: {kind}: {error}")
            if "contact" in str(error).lower():
                raise
        else:
            self.kinds[kind] += 1
            self.kinds[f"partition {wanted['partition']}"] += 1

    def _disturb(self, running: list[int]) -> None:
        """Sometimes cancels a running job or requeues it."""
        for chance, what in ((0.05, "cancel"), (0.05, "requeue")):
            if running and self.draw.random() < chance:
                try:
                    self.slurm.tell(what, self.draw.choice(running))
                    self.kinds[what] += 1
                except Refused:
                    pass  # the job has ended meanwhile

    def _mend(self) -> None:
        """Returns nodes to service that Slurm drained or considers down after a crash."""
        if not self.kills:
            return
        done = self.here.up.run("sinfo", "-h", "-N", "-t", "drain,down,fail", "-o", "%N").split()
        if done:
            self.findings.count("nodes put back into service", len(set(done)))
            self.here.up.run("scontrol", "update", f"NodeName={','.join(sorted(set(done)))}", "State=RESUME")

    def _drain(self) -> None:
        """Waits for the running jobs, and then cancels the waiting ones."""
        say("waiting for the last jobs")
        end = time.monotonic() + 60
        while time.monotonic() < end:
            running, completing, pending = self.slurm.running()
            if not (running or completing or pending):
                break
            self._mend()
            time.sleep(0.5)
        self.findings.count("jobs cancelled at the end", self.slurm.running()[2])
        for state in ("PENDING", "RUNNING"):
            self.here.up.run("scancel", "--user=root", "--state", state)
        until(lambda: not self.here.up.run("squeue", "-h", "-o", "%A"), "an empty queue")


def judge_log(here: Site, findings: Findings, watch: Watch, kills: list[float]) -> int:
    """Checks the log of ended jobs for nodes and links given twice. Returns the number of its runs."""
    ran = tree.completed(here.jobs_log)
    for seen, without, what in watch.without_links:
        # After a crash, slurmctld considers a job that ended just before it as running, until the slurmds
        # report its end. No process uses its links.
        if all(_is_ghost(job, seen, ran, kills) for job in without):
            findings.count("meetings of jobs that had ended before a crash, for slurmctld only")
        else:
            findings.add("look", what)
    switches = tree.switches(here.up.directory / "topology.conf")
    wrong, allowed = checks.met(ran, switches, RULES, PREFIX)
    findings.count("pairs in the log that may meet", len(allowed))
    for one, other, places in [*wrong, *checks.nodes_twice(ran, RULES)]:
        both = max(one.start, other.start), min(one.end, other.end)
        if any(kill - FORGOTTEN <= both[0] and both[1] <= kill + 1 for kill in kills):
            # Slurm forgot a start or an end in the crash, and later logged another time.
            findings.count("meetings in the log in the seconds that a crash made Slurm forget")
        else:
            findings.add("log", _pair(one, other, places))
    return len(ran)


def _is_ghost(job: int, seen: float, ran: list[tree.Ran], kills: list[float]) -> bool:
    """Whether, according to the log, the job had ended before a crash after which it was seen."""
    ends = [each.end for each in ran if each.job == job]
    return any(end <= kill + 1 and kill < seen for end in ends for kill in kills)


def measure(options: Options) -> Result:
    """Runs the jobs and prints the counts."""
    ready(options.nodes)
    shape = Shape.of(options.nodes)
    findings = Findings()
    partitions = " ".join(f"{name}:ALL:{'EXCLUSIVE' if rule.whole else 'NO'}" for name, rule in RULES.items())
    words = ["--partitions", partitions, "--select", "cons_tres", "--cpus", CORES]
    words += ["--group", f"{shape.nodes} Gres=gpu:{GPUS}", "--conf", "GresTypes=gpu"]
    began = time.monotonic()
    with site(options.nodes, options.engine, *words) as here:
        here.begin(System("soak", CONF), {"MinJobAge": 5})
        with here.client() as slurm, Watch(here, findings) as watch:
            soak = Soak(here, slurm, watch, findings, options, random.Random(options.seed))
            soak.run()
        runs = judge_log(here, findings, watch, soak.kills)
        ends = checks.counts(here.jobs_log)
        counters = here.counters()
        if options.keep and findings.wrong:
            options.keep.mkdir(parents=True, exist_ok=True)
            for path in (here.log, here.jobs_log, here.state / "topolane_links"):
                if path.exists():
                    shutil.copy(path, options.keep)
    counts = {
        "runs of jobs": runs,
        **{f"ended: {state}": count for state, count in sorted(ends.items())},
        **{f"submitted: {kind}": count for kind, count in sorted(soak.kinds.items())},
        **dict(sorted(findings.seen.items())),
        **{f"the plugin: {name}": value for name, value in counters.items() if not name.startswith("under_")},
        "violations": len(findings.wrong),
    }
    print(table([["what", "count"], *([name, f"{count:,}"] for name, count in counts.items())]))
    for line in findings.wrong[:MOST_SHOWN]:
        print(f"VIOLATION {line}")
    if len(findings.wrong) > MOST_SHOWN:
        print(f"and {len(findings.wrong) - MOST_SHOWN} more")
    print(
        f"{runs:,} runs of jobs in {time.monotonic() - began:.0f} s: {'nothing was given twice' if not findings.wrong else 'FAILED'}"
    )
    facts = {"options": asked(options), "counts": counts, "violations": findings.wrong}
    return Result(facts=facts, failed=bool(findings.wrong))
