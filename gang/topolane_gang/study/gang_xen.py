"""The micro-benchmark in domains of a real Xen, emulated: which share of their iterations is in step."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from topolane.sweep.seeds import mean_of

from topolane_gang.study import gang, gang_programs, gang_simulated, gang_studies
from topolane_gang.study.gang import Done, Mix, Play, PlayedJob
from topolane_gang.study.gang_programs import Coevp, Independent, ProgramRun
from topolane_gang.study.gang_simulated import PlayTask
from topolane_gang.study.xen_machine import (
    NATIVE,
    Cores,
    Failed,
    NoXenMachine,
    Panicked,
    XenMachine,
    guest_kernel,
    initramfs,
    missing,
    python,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from topolane.sweep.seeds import Mean

MEMORY = 96
"""Megabytes of a domain."""
WIDTHS = (2, 4)
"""Cores of the pool, and virtual processors of each domain."""
ALLOWED = (2, 4, 8)
"""Widths that can be asked for."""
COUNTS = (2, 3, 4)
"""Domains at the same time."""
DISTURBED_COUNT = 3
"""Domains of the settings in which one more domain blocks."""
BOOTS = 4
"""Machines that are booted one after another because Xen panics, before the study gives up."""
RATE = 10_000_000
"""Rounds of the kernel in a second, about: how often a thread asks Xen's clock."""


@dataclasses.dataclass(frozen=True)
class DomainScheduler:
    """Who switches between the domains: a pool of Xen's, or the agent by pauses."""

    name: str
    scheduler: str = "credit"
    """Of the pool."""
    granularity: str = "core"
    slice: int = 0
    """Milliseconds of the credit scheduler; 0 for Xen's own."""
    policy: str | None = None
    """Of the agent, if it switches."""


BATCH = DomainScheduler("batch")
CREDIT = DomainScheduler("credit")
CREDIT2 = DomainScheduler("credit2", "credit2")
GANG = DomainScheduler("gang", granularity="socket")
LONG = DomainScheduler("gang, 100 ms", granularity="socket", slice=100)
PAUSED = DomainScheduler("gang by pauses", policy="gang")
ADAPTIVE = DomainScheduler("adaptive", policy="adaptive")
SCHEDULERS = (BATCH, CREDIT, CREDIT2, GANG)
MORE = (LONG, PAUSED, ADAPTIVE)
"""Those of --full, in addition."""
MIXED = (BATCH, CREDIT, CREDIT2, GANG, ADAPTIVE)
"""Those of the mix."""
DISTURBED = (CREDIT, GANG)
"""Those of the settings in which one more domain blocks."""
MIX = Mix(kinds=("coevp", "coevp", "compute", "coevp"), lengths=(2.0, 1.0, 0.5, 0.5))
"""The mix without its barriers each millisecond: emulated cores take turns of several milliseconds."""


@dataclasses.dataclass(frozen=True)
class XenSetting:
    """A number of domains of a width under a scheduler."""

    width: int
    domains: int
    scheduler: DomainScheduler
    blocking: bool = False
    """Whether one more domain, CoEVP-like, blocks again and again next to them. Its own iterations are not counted."""


@dataclasses.dataclass(frozen=True)
class InStep:
    """What was seen in a setting."""

    setting: XenSetting
    done: list[Done]
    """Ends of iterations as the threads saw them."""
    counted: list[Done] = dataclasses.field(default_factory=list)
    """The same by Xen's count of the time that each virtual processor ran."""
    begun: list[tuple[float, ...]] = dataclasses.field(default_factory=list)
    """When each domain's threads began, seconds of Xen's clock after the very first; empty if one ran after another."""

    @property
    def mean(self) -> Mean:
        """Of the domains' shares in step, with its confidence interval, as if the domains were drawn on their own."""
        return mean_of(shares(self.done))

    @property
    def worst(self) -> float:
        """The longest lag, seconds."""
        return worst(self.done)


def shares(done: Sequence[Done]) -> list[float]:
    """Of the iterations of each domain, those that end at most one iteration after the other threads'."""
    lags = [gang_studies.lags(one.ends) for one in done]
    return [sum(lag <= gang.ITERATION for lag in each) / len(each) for each in lags if each]


def worst(done: Sequence[Done]) -> float:
    """The longest lag, seconds."""
    return max((lag for one in done for lag in gang_studies.lags(one.ends)), default=0.0)


@dataclasses.dataclass(frozen=True)
class XenMix:
    """The mix on cores under a scheduler."""

    width: int
    scheduler: DomainScheduler
    done: list[Done]


@dataclasses.dataclass(frozen=True)
class Found:
    """All that a machine has shown."""

    steps: list[InStep] = dataclasses.field(default_factory=list)
    mixes: list[XenMix] = dataclasses.field(default_factory=list)
    panics: list[str] = dataclasses.field(default_factory=list)
    """What was said when Xen panicked. The machine was then booted again for what was left."""


class XenDomains:
    """Domains of a width, which wait for work in dom0's pool `gangs`."""

    def __init__(self, folder: Path, width: int, count: int) -> None:
        """Builds what they boot; the machine sees only what was there when it booted. Raises NoXenMachine."""
        self.width = width
        self.names = [f"domain{number}" for number in range(1, count + 1)]
        self.folder = folder
        if reason := missing():
            raise NoXenMachine(reason)
        try:
            program = gang_programs.compiled("gcc", folder / "work", "-pthread", "-static")
        except gang_programs.Missing as error:
            raise NoXenMachine(str(error)) from error
        image = initramfs(folder, "guest", {"work": program, "xen-privcmd.ko": privcmd()})
        for name in self.names:
            self.configuration(name).write_text(
                f'name="{name}"\nkernel="{guest_kernel()}"\nramdisk="{image}"\nmemory={MEMORY}\nvcpus={width}\n'
                'extra="console=hvc0 quiet panic=-1"\npool="gangs"\n'
                'on_poweroff="destroy"\non_reboot="destroy"\non_crash="destroy"\n'
            )

    def configuration(self, name: str) -> Path:
        """Of a domain, for xl."""
        return self.folder / f"{name}.cfg"

    def boot(self, machine: XenMachine) -> None:
        """Starts them one after another, each until it waits for work."""
        self.machine = machine
        self.pool(CREDIT)
        self.consoles: dict[str, str] = {}
        for name in self.names:
            machine.run(f"xl create -q {self.configuration(name)}")
            machine.run(
                f"until grep -q ready {log(name)}; do xl domid {name} >/dev/null || exit 1; sleep 1; done",
                900,
            )
            number = machine.run(f"xl domid {name}").strip()
            self.consoles[name] = machine.run(f"xenstore-read /local/domain/{number}/console/tty").strip()

    def pool(self, scheduler: DomainScheduler) -> None:
        """Moves all of them to a pool of this kind."""
        granularity = "socket" if scheduler.granularity == "socket" else "cpu"
        self.machine.run(
            f"sh {NATIVE}/pool {scheduler.scheduler} {granularity} {scheduler.slice} {self.cores()}"
        )

    def cores(self) -> str:
        """Those of the domains, for a command."""
        return " ".join(map(str, self.machine.cores.of_domains))

    @contextlib.contextmanager
    def under(self, scheduler: DomainScheduler) -> Iterator[None]:
        """A scheduler has all of them; an agent has those that it takes."""
        self.taken: list[str] = []
        self.policy = scheduler.policy
        if self.policy is None:
            self.pool(scheduler)
            yield
            return
        self.machine.run(f"sh {NATIVE}/pool none cpu 0 {self.cores()}; mkfifo /run/names")
        agent = f"{python()} -m topolane_gang.study.xen_agent {self.policy} {self.cores()}"
        # The last program keeps the pipe open: its end is the agent's.
        self.machine.run(
            f"{agent} </run/names >/run/agent.log 2>&1 & sleep 1000000 >/run/names & echo $! >/run/open"
        )
        self.agent_says("ready")
        yield
        self.machine.run(
            "kill $(cat /run/open); rm /run/names; while xl cpupool-list | grep -q ^topolane; do sleep 1; done"
        )

    def take(self, names: Sequence[str]) -> None:
        """The agent takes these too, if there is one."""
        for name in names if self.policy else ():
            if name not in self.taken:
                self.machine.run(f"echo {name} >/run/names")
                self.agent_says(name)
                self.taken.append(name)

    def agent_says(self, line: str) -> None:
        """Waits for it. Raises Failed with what it said if it ended."""
        wait = f"until grep -qx {line} /run/agent.log; do pgrep -f studies.xen_agent >/dev/null || {{ cat /run/agent.log; exit 1; }}; sleep 1; done"
        self.machine.run(wait)

    def play(self, jobs: Sequence[PlayedJob]) -> list[str]:
        """Does jobs, each in the domain of its name from its arrival on. Returns what the domains printed."""
        before = {job.name: int(self.machine.run(f"wc -c <{log(job.name)}")) for job in jobs}
        starts, time = [], 0.0
        for job in sorted(jobs, key=lambda job: job.arrival):
            starts.append(f"sleep {job.arrival - time:g}; " if job.arrival > time else "")
            starts.append(f"echo '{words(job)}' >{self.consoles[job.name]}; ")
            time = job.arrival
        self.machine.run("".join(starts))
        for job in jobs:
            wait = f"until tail -c +{before[job.name] + 1} {log(job.name)} | grep -q ^done; do sleep 1; done"
            self.machine.run(wait, 1200)
        return [self.machine.run(f"tail -c +{before[job.name] + 1} {log(job.name)}") for job in jobs]


def words(job: PlayedJob) -> str:
    """The arguments of the domain's program."""
    own = job.run.words(RATE, Path("/log"))
    return " ".join([*own, "--threads", str(job.threads), "--pin", "--xen-clock"])


def privcmd() -> Path:
    """The kernel module by which the domains ask Xen for their clocks."""
    kernel = guest_kernel()
    assert kernel
    modules = kernel.parents[1] / "lib" / "modules" / kernel.name.removeprefix("vmlinuz-")
    return next(modules.rglob("xen-privcmd.ko"))


def log(name: str) -> str:
    """What a domain has printed."""
    return f"/var/log/xen/console/guest-{name}.log"


def done_by(printed: str, job: PlayedJob) -> Done:
    """What became of a domain's job; seconds after its first thread began. Raises Failed if it logged nothing."""
    lines = logged(printed, job)
    return done(job, [(int(line[0]), line[2]) for line in lines], min(line[1] for line in lines))


def counted_by(printed: str, job: PlayedJob) -> Done:
    """The same by Xen's count: an iteration ends when its virtual processor has run for long enough, whether or not its
    thread has looked then. Raises Failed.
    """
    lines = logged(printed, job)
    ahead = xen_is_ahead(lines)
    ends = []
    for thread, _, _, before, ran_before, after, ran, since, due, _ in lines:
        runs_for = after + ahead - since
        ends.append(
            (int(thread), after - (ran - due) if ran - due <= runs_for else before + due - ran_before)
        )
    return done(job, ends, min(line[1] for line in lines))


def xen_is_ahead(lines: Sequence[Sequence[float]]) -> float:
    """By how much Xen's clock is ahead of a domain's, a constant: no processor has run since a time that is still to come."""
    return max(line[-1] for line in lines)


def logged(printed: str, job: PlayedJob) -> list[list[float]]:
    """The lines of the job's log. Raises Failed if there are none."""
    lines = [
        [float(word) for word in line.split()[1:]] for line in printed.splitlines() if line.startswith("log ")
    ]
    if not lines:
        raise Failed(f"{job.name} has logged nothing: {printed}")
    return lines


def done(job: PlayedJob, ends: Sequence[tuple[int, float]], zero: float) -> Done:
    """What became of a job, by the ends of its threads' iterations and when the first began."""
    by_thread: dict[int, list[float]] = {}
    for thread, end in ends:
        by_thread.setdefault(thread, []).append(end - zero)
    own = [by_thread[thread] for thread in sorted(by_thread)]
    return Done(job, own, 0.0, max(each[-1] for each in own))


def settings(width: int, counts: Sequence[int], schedulers: Sequence[DomainScheduler]) -> list[XenSetting]:
    """What is measured in domains of a width: batch, in which each domain is alone, with the fewest."""
    own = []
    for scheduler in schedulers:
        own += [
            XenSetting(width, count, scheduler) for count in (counts[:1] if scheduler is BATCH else counts)
        ]
        if scheduler in DISTURBED and max(counts) > DISTURBED_COUNT:
            own.append(XenSetting(width, DISTURBED_COUNT, scheduler, blocking=True))
    return own


def measure(
    folder: Path,
    width: int,
    counts: Sequence[int],
    iterations: int,
    schedulers: Sequence[DomainScheduler] = SCHEDULERS,
    with_mix: Sequence[DomainScheduler] = (),
    seconds: float = gang.SECONDS,
) -> Found:
    """Domains of a width under schedulers, some of them also with the mix, which is longer for more seconds. If Xen panics,
    another machine measures what is left. Raises NoXenMachine, or Failed.
    """
    domains = XenDomains(folder, width, max(counts))
    left = settings(width, counts, schedulers)
    mixes = [scheduler for scheduler in schedulers if scheduler in with_mix]
    found = Found()
    while left or mixes:
        boot = folder / f"boot{len(found.panics) + 1}"
        boot.mkdir()
        try:
            with XenMachine(boot, Cores(width, counted=True)) as machine:
                domains.boot(machine)
                measure_left(domains, found, left, mixes, iterations, seconds)
        except Panicked as error:
            found.panics.append(str(error))
            if len(found.panics) == BOOTS:
                raise
    return found


def measure_left(
    domains: XenDomains,
    found: Found,
    left: list[XenSetting],
    mixes: list[DomainScheduler],
    iterations: int,
    seconds: float,
) -> None:
    """Measures what is left, scheduler by scheduler. What has been found is no longer left."""
    for scheduler in dict.fromkeys([*(setting.scheduler for setting in left), *mixes]):
        with domains.under(scheduler):
            for setting in [one for one in left if one.scheduler is scheduler]:
                found.steps.append(in_step(domains, setting, iterations))
                left.remove(setting)
            if scheduler in mixes:
                done = mixed(domains, scheduler, mix(domains.width, seconds))
                found.mixes.append(XenMix(domains.width, scheduler, done))
                mixes.remove(scheduler)


def jobs(setting: XenSetting, iterations: int) -> tuple[PlayedJob, ...]:
    """The micro-benchmark."""
    run = ProgramRun(Independent(gang.ITERATION), iterations=iterations)
    return tuple(PlayedJob(f"domain{number}", run, setting.width) for number in range(1, setting.domains + 1))


def blockers(setting: XenSetting, iterations: int) -> tuple[PlayedJob, ...]:
    """The domain that blocks, if the setting has one: CoEVP-like, for as long as all domains would run one by one."""
    if not setting.blocking:
        return ()
    work = Coevp(gang.COARSE, gang.TASKS * setting.width, gang.FINE, gang.SPREAD, gang.WAIT)
    run = ProgramRun(work, seconds=gang.ITERATION * iterations * (setting.domains + 1))
    return (PlayedJob(f"domain{setting.domains + 1}", run, setting.width),)


def in_step(domains: XenDomains, setting: XenSetting, iterations: int) -> InStep:
    """Plays the micro-benchmark."""
    own = jobs(setting, iterations)
    all_jobs = [*own, *blockers(setting, iterations)]
    domains.take([job.name for job in all_jobs])
    batches = [[job] for job in own] if setting.scheduler is BATCH else [all_jobs]
    printed = [said for batch in batches for said in domains.play(batch)]
    return InStep(
        setting,
        [done_by(said, job) for said, job in zip(printed, own)],
        [counted_by(said, job) for said, job in zip(printed, own)],
        begun([logged(said, job) for said, job in zip(printed, own)]) if len(batches) == 1 else [],
    )


def begun(logs: Sequence[Sequence[Sequence[float]]]) -> list[tuple[float, ...]]:
    """When the threads of each domain began, seconds of Xen's clock after the very first."""
    each = []
    for lines in logs:
        firsts: dict[float, float] = {}
        for thread, start, *_ in lines:
            firsts.setdefault(thread, start + xen_is_ahead(lines))
        each.append([firsts[thread] for thread in sorted(firsts)])
    zero = min(map(min, each))
    return [tuple(one - zero for one in starts) for starts in each]


def mix(width: int, seconds: float = gang.SECONDS) -> tuple[PlayedJob, ...]:
    """The jobs of the mix, each in a domain."""
    own = MIX.jobs(width, seconds)
    return tuple(dataclasses.replace(job, name=f"domain{number}") for number, job in enumerate(own, start=1))


def mixed(domains: XenDomains, scheduler: DomainScheduler, own: Sequence[PlayedJob]) -> list[Done]:
    """Plays the mix. Batch is each job alone, from when the one before has ended."""
    domains.take([job.name for job in own])
    if scheduler is not BATCH:
        return by_one_clock(domains.play(own), own)
    time, found = 0.0, []
    for job in own:
        alone = done_by(domains.play([dataclasses.replace(job, arrival=0.0)])[0], job)
        time = max(time, job.arrival) + (alone.finished or 0.0)
        found.append(dataclasses.replace(alone, finished=time))
    return found


def by_one_clock(printed: Sequence[str], own: Sequence[PlayedJob]) -> list[Done]:
    """What became of jobs; seconds of Xen's clock after the first thread of the first one began."""
    each = [logged(said, job) for said, job in zip(printed, own)]
    zero = min(line[1] for line in each[0]) + xen_is_ahead(each[0])
    return [
        done(job, [(int(line[0]), line[2] + xen_is_ahead(lines)) for line in lines], zero)
        for lines, job in zip(each, own)
    ]


def simulated_mix(mixed: XenMix) -> list[Done] | None:
    """The same on the simulated hypervisor, if it has such a scheduler."""
    policy = policy_of(mixed.scheduler)
    if policy is None:
        return None
    jobs = tuple(one.job for one in mixed.done)
    return gang_simulated.play(PlayTask(mixed.width, Play(policy, jobs, 300.0))).done


def simulated(seen: InStep, iterations: int) -> InStep | None:
    """The same on the simulated hypervisor, where each thread begins when it did on Xen. It has neither credit2 nor other
    slices of Xen's.
    """
    setting = seen.setting
    policy = policy_of(setting.scheduler)
    if policy is None:
        return None
    own = jobs(setting, iterations)
    late = [dataclasses.replace(job, delays=delays) for job, delays in zip(own, seen.begun)] or own
    seconds = 10 * iterations * gang.ITERATION * setting.domains
    all_jobs = (*late, *blockers(setting, iterations))
    done = gang_simulated.play(PlayTask(setting.width, Play(policy, all_jobs, seconds))).done
    return InStep(setting, [one for one in done if isinstance(one.job.run.workload, Independent)])


def policy_of(scheduler: DomainScheduler) -> str | None:
    """By which the simulated hypervisor does the same."""
    return scheduler.policy or {BATCH: "batch", CREDIT: "free", GANG: "gang"}.get(scheduler)


def named(setting: XenSetting) -> str:
    """The domains of a setting, in words."""
    own = f"{setting.domains} domains of {setting.width}"
    return f"{own} next to one that blocks" if setting.blocking else own
