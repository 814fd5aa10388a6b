"""The micro-benchmark in domains of a real Xen, emulated: which share of their iterations is in step."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from topolane.studies import gang, gang_programs, gang_simulated, gang_studies
from topolane.studies.gang import Done, Expectation, Job, Play
from topolane.studies.gang_programs import Independent, Run
from topolane.studies.gang_simulated import Task
from topolane.studies.xen_machine import (
    NATIVE,
    Cores,
    Failed,
    Unable,
    XenMachine,
    guest_kernel,
    initramfs,
    missing,
)
from topolane.sweep.seeds import mean_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from topolane.sweep.seeds import Mean

MEMORY = 96
"""Megabytes of a domain."""
WIDTHS = (2, 4)
"""Cores of the pool, and virtual processors of each domain."""
COUNTS = (2, 3, 4)
"""Domains at the same time."""
IN_STEP = 0.95
"""The share of iterations that gang is to keep in step."""
RATE = 10_000_000
"""Rounds of the kernel in a second, about: how often a thread asks Xen's clock."""


@dataclasses.dataclass(frozen=True)
class Scheduler:
    """A pool of Xen's: who schedules, and how many cores together."""

    name: str
    scheduler: str
    granularity: str


BATCH = Scheduler("batch", "credit", "core")
CREDIT = Scheduler("credit", "credit", "core")
CREDIT2 = Scheduler("credit2", "credit2", "core")
GANG = Scheduler("gang", "credit", "socket")
SCHEDULERS = (BATCH, CREDIT, CREDIT2, GANG)


@dataclasses.dataclass(frozen=True)
class Setting:
    """So many domains of a width under a scheduler."""

    width: int
    domains: int
    scheduler: Scheduler


@dataclasses.dataclass(frozen=True)
class InStep:
    """What was seen in a setting."""

    setting: Setting
    done: list[Done]

    @property
    def shares(self) -> list[float]:
        """Of the iterations of each domain, those that end at most one iteration after the other threads'."""
        lags = [gang_studies.lags(one.ends) for one in self.done]
        return [sum(lag <= gang.ITERATION for lag in each) / len(each) for each in lags if each]

    @property
    def mean(self) -> Mean:
        """Of the domains' shares, with its confidence interval, as if the domains were drawn on their own."""
        return mean_of(self.shares)

    @property
    def worst(self) -> float:
        """The longest lag, seconds."""
        return max((lag for one in self.done for lag in gang_studies.lags(one.ends)), default=0.0)


class Domains:
    """Domains of a width, which wait for work in dom0's pool `gangs`."""

    def __init__(self, folder: Path, width: int, count: int) -> None:
        """Builds what they boot; the machine sees only what was there when it booted. Raises Unable."""
        self.width = width
        self.names = [f"domain{number}" for number in range(1, count + 1)]
        self.folder = folder
        if reason := missing():
            raise Unable(reason)
        try:
            program = gang_programs.compiled("gcc", folder / "work", "-pthread", "-static")
        except gang_programs.Missing as error:
            raise Unable(str(error)) from error
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

    def pool(self, scheduler: Scheduler) -> None:
        """Moves all of them to a pool of this kind."""
        cores = " ".join(map(str, self.machine.cores.of_domains))
        granularity = "socket" if scheduler.granularity == "socket" else "cpu"
        self.machine.run(f"sh {NATIVE}/pool {scheduler.scheduler} {granularity} {cores}")

    def play(self, names: Sequence[str], run: Run) -> list[Done]:
        """Runs the work in these domains at once, until all have done it."""
        words = f"independent --iteration {gang.ITERATION} --iterations {run.iterations}"
        words += f" --rate {RATE} --threads {self.width} --pin --xen-clock"
        before = {name: int(self.machine.run(f"wc -c <{log(name)}")) for name in names}
        self.machine.run("; ".join(f"echo '{words}' >{self.consoles[name]}" for name in names))
        for name in names:
            wait = f"until tail -c +{before[name] + 1} {log(name)} | grep -q ^done; do sleep 1; done"
            self.machine.run(wait, 1200)
        return [
            done_by(self.machine.run(f"tail -c +{before[name] + 1} {log(name)}"), Job(name, run, self.width))
            for name in names
        ]


def privcmd() -> Path:
    """The kernel module by which the domains ask Xen for their clocks."""
    kernel = guest_kernel()
    assert kernel
    modules = kernel.parents[1] / "lib" / "modules" / kernel.name.removeprefix("vmlinuz-")
    return next(modules.rglob("xen-privcmd.ko"))


def log(name: str) -> str:
    """What a domain has printed."""
    return f"/var/log/xen/console/guest-{name}.log"


def done_by(printed: str, job: Job) -> Done:
    """What became of a domain's job; seconds after its first thread began. Raises Failed if it logged nothing."""
    lines = [line.split()[1:4] for line in printed.splitlines() if line.startswith("log ")]
    if not lines:
        raise Failed(f"{job.name} has logged nothing: {printed}")
    zero = min(float(start) for _, start, _ in lines)
    ends: dict[int, list[float]] = {}
    for thread, _, end in lines:
        ends.setdefault(int(thread), []).append(float(end) - zero)
    own = [ends[thread] for thread in sorted(ends)]
    return Done(job, own, 0.0, max(each[-1] for each in own))


def measure(folder: Path, width: int, counts: Sequence[int], iterations: int) -> list[InStep]:
    """All schedulers with domains of a width. Raises Unable, or Failed."""
    domains = Domains(folder, width, max(counts))
    found = []
    run = Run(Independent(gang.ITERATION), iterations=iterations)
    with XenMachine(folder, Cores(width, counted=True)) as machine:
        domains.boot(machine)
        for scheduler in SCHEDULERS:
            domains.pool(scheduler)
            for count in counts[:1] if scheduler is BATCH else counts:
                names = domains.names[:count]
                if scheduler is BATCH:
                    done = one_after_another(domains, names, run)
                else:
                    done = domains.play(names, run)
                found.append(InStep(Setting(width, count, scheduler), done))
    return found


def simulated(setting: Setting, iterations: int) -> InStep | None:
    """The same on the simulated hypervisor; it has no credit2."""
    policy = {BATCH: "batch", CREDIT: "free", GANG: "gang"}.get(setting.scheduler)
    if policy is None:
        return None
    run = Run(Independent(gang.ITERATION), iterations=iterations)
    jobs = tuple(Job(f"domain{number}", run, setting.width) for number in range(1, setting.domains + 1))
    task = Task(setting.width, Play(policy, jobs, 10 * iterations * gang.ITERATION * setting.domains))
    return InStep(setting, gang_simulated.play(task).done)


def expectations(found: Sequence[InStep]) -> list[Expectation]:
    """Gang keeps iterations in step, also where the credit scheduler has many out of step."""
    shares = {one.setting: one.mean.mean for one in found}
    rows = []
    for one in found:
        if one.setting.scheduler is GANG:
            credit = shares[dataclasses.replace(one.setting, scheduler=CREDIT)]
            rows.append(
                Expectation(
                    f"Xen, {one.setting.domains} domains of {one.setting.width}: iterations in step under gang",
                    f"at least {IN_STEP:.0%}",
                    f"{one.mean.mean:.1%} (credit {credit:.1%})",
                    one.mean.mean >= IN_STEP,
                )
            )
    return rows


def one_after_another(domains: Domains, names: Sequence[str], run: Run) -> list[Done]:
    """Each domain alone, when the one before has ended."""
    done: list[Done] = []
    for name in names:
        done += domains.play([name], run)
    return done
