"""`topolane paper gang --xen`: what is counted is what the words say, and domains of a real Xen log all iterations."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import InputError
from topolane.cli import cli
from topolane_gang.cli import paper_xen as command
from topolane_gang.study import gang_judged, gang_xen, xen_machine
from topolane_gang.study.gang import Done, PlayedJob
from topolane_gang.study.gang_programs import Independent, ProgramRun
from topolane_gang.study.gang_xen import (
    ADAPTIVE,
    CREDIT,
    CREDIT2,
    GANG,
    SCHEDULERS,
    DomainScheduler,
    InStep,
    XenMix,
    XenSetting,
)

TWO = PlayedJob("two", ProgramRun(Independent(0.1), iterations=2), 2)
EVEN = Done(TWO, [[0.1, 0.2], [0.1, 0.25]])
UNEVEN = Done(TWO, [[0.1, 0.2], [0.3, 0.5]])


def test_in_step_is_at_most_an_iteration_after_the_others() -> None:
    """Of the four iterations of two threads, those that end 0.2 and 0.3 s after the other's are out of step: half. The
    mean of two domains, of which one is whole, is three quarters, give or take 12.706 standard errors of 0.25."""
    seen = InStep(XenSetting(2, 2, CREDIT), [EVEN, UNEVEN])
    assert gang_xen.shares(seen.done) == [1.0, 0.5]
    assert seen.mean.mean == 0.75
    assert seen.mean.half == pytest.approx(12.706 * 0.25, rel=1e-4)
    assert seen.worst == pytest.approx(0.3)


def test_a_log_of_a_console_is_read_by_thread() -> None:
    """Lines of a console end with a carriage return. Times count from the first thread's beginning; what else a domain
    says is no iteration."""
    said = "ready\r\nlog 1 7.5 8.0\r\nlog 0 7.0 7.6\r\nlog 0 7.6 8.5\r\nlog 1 8.0 9.0\r\ndone\r\n"
    done = gang_xen.done_by(said, TWO)
    assert done.ends == [pytest.approx([0.6, 1.5]), pytest.approx([1.0, 2.0])]
    assert done.finished == pytest.approx(2.0)


LOG = """\
log 0 1.0 5.0 4.9 2.095 5.0 2.105 101.0 2.1 98.0
log 1 1.0 5.0 3.0 2.098 5.0 2.103 102.999 2.1 97.9
"""


def test_an_iteration_ends_when_xen_has_counted_it() -> None:
    """Xen's clock is 98 s ahead. Thread 0 has run since 3.0 of its domain's clock, so its work was done 5 ms before its look at
    5.0. Thread 1 runs only since 4.999: 1 ms. It had run 3 ms too long, so its work was done before it lost the core, 2 ms
    after its look at 3.0. Times count from 1.0."""
    done = gang_xen.counted_by(LOG, TWO)
    assert done.ends == [pytest.approx([3.995]), pytest.approx([2.002])]
    assert gang_xen.done_by(LOG, TWO).ends == [[4.0], [4.0]]


def test_a_job_of_the_mix_counts_from_its_arrival() -> None:
    """Domains have clocks of their own: of the second, which arrives half a second after the first, Xen's clock is 88 s
    ahead. It ends at 105 of Xen's clock, where the first began at 99."""
    first, second = gang_xen.mix(2)[:2]
    other = "log 0 11.5 17.0 0 0 0 0 0 0 88.0\nlog 1 11.5 16.0 0 0 0 0 0 0 87.0\n"
    done = gang_xen.by_one_clock([LOG, other], [first, second])
    assert [one.turnaround for one in done] == [pytest.approx(4.0), pytest.approx(5.5)]


def test_gang_is_compared_with_credit_in_the_same_setting() -> None:
    """Each setting under gang has two rows: what credit kept out of step, and what gang did."""
    found = [InStep(XenSetting(2, 2, CREDIT), [UNEVEN]), InStep(XenSetting(2, 2, GANG), [UNEVEN])]
    credit, ganged = gang_judged.judged_on_xen(found)
    assert (credit.side, ganged.side, ganged.ours) == (True, False, "50.0% (credit 50.0%)")
    assert not credit.given and not ganged.given
    _, ganged = gang_judged.judged_on_xen([found[0], InStep(XenSetting(2, 2, GANG), [EVEN])])
    assert ganged.side


def test_the_simulated_hypervisor_does_the_same_jobs() -> None:
    """Every seed has every domain with all iterations of all threads, begun as on Xen; credit2 is not simulated."""
    model = gang_xen.simulated(
        InStep(XenSetting(4, 3, GANG), [], begun=[(0.0,) * 4, (0.2,) * 4, (0.1,) * 4]), 5
    )
    assert model is not None
    assert [len(ends) for done in model.done for ends in done.ends] == [5] * (4 * len(model.done))
    assert model.done[1].ends[0][0] > 0.3
    assert gang_xen.simulated(InStep(XenSetting(4, 3, CREDIT2), []), 5) is None
    shown = command.table([InStep(XenSetting(4, 3, CREDIT2), [EVEN])], [None])
    assert shown.lines[0][-2:] == (None, None)


def test_options_of_xen_are_refused_without_it_and_widths_are_known() -> None:
    """--full and --widths need --xen; a width that no machine is made for is named."""
    for option in (["--full"], ["--widths", "2"]):
        assert "are for --xen" in CliRunner().invoke(cli, ["paper", "gang", *option]).output
    ran = CliRunner().invoke(cli, ["paper", "gang", "--xen", "--widths", "2,3"])
    assert ran.exit_code == 2
    assert "2,3 is not a list of numbers out of 2, 4, 8" in ran.output


def test_the_mix_is_shown_next_to_the_simulated_one() -> None:
    """Of two jobs of the mix that end 4 and 5.5 s after their arrivals the mean is 4.75 s; the simulated adaptive has figures."""
    first, second = gang_xen.mix(2)[:2]
    done = [Done(first, [[4.0]], 0.0, 4.0), Done(second, [[6.0]], 0.0, 6.0)]
    (line,) = command.mixes([XenMix(2, ADAPTIVE, done)]).dicts()
    assert (line["mean"], line["all"]) == (4.75, 6.0)
    assert 4 < line["simulated mean"] < line["simulated all"]


def test_without_xen_a_sentence_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--xen goes with no other cores, and where there is no Xen the command ends with 2 and names what it lacks."""
    assert CliRunner().invoke(cli, ["paper", "gang", "--xen", "--real"]).exit_code == 2
    monkeypatch.setenv("TOPOLANE_XEN", str(tmp_path))
    with pytest.raises(InputError, match="^not measured on Xen: "):
        CliRunner().invoke(cli, ["paper", "gang", "--xen"], catch_exceptions=False)


@pytest.mark.parametrize("ended", [False, True])
def test_a_panic_of_xen_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    """Whether the machine still waits or has ended, a panic on its console is said, long before the deadline. Without one, what
    is waited for is missed at the deadline, or has ended."""
    monkeypatch.setattr(xen_machine, "LOOK", 0.05)
    machine = xen_machine.XenMachine.__new__(xen_machine.XenMachine)
    machine.folder = tmp_path
    machine.commands, other = socket.socketpair()
    if ended:
        other.close()
    (tmp_path / "console").write_text("Done setting up Dom0\n")
    with pytest.raises(xen_machine.Failed, match="has ended" if ended else r"no answer in 0\.2 s"):
        machine.said("ready", 0.2)
    (tmp_path / "console").write_text("(XEN) Panic on CPU 2:\n")
    with pytest.raises(xen_machine.Panicked, match="Xen panicked, try again"):
        machine.said("ready", 600.0)
    other.close()
    with pytest.raises(xen_machine.Panicked, match="Xen panicked, try again"):
        machine.tried("xl list")


def test_a_dom0_that_xen_no_longer_runs_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three reports of a core that does nothing, with the same number of interrupts: nothing comes any more. While the number
    grows, dom0 is slow and goes on."""
    monkeypatch.setattr(xen_machine, "LOOK", 0.05)
    machine = xen_machine.XenMachine.__new__(xen_machine.XenMachine)
    machine.folder = tmp_path
    machine.commands, other = socket.socketpair()
    stall = "[  323.069489] rcu: \t0-...0: (3 ticks this GP) idle=1f84/1/0x4 softirq={0}/21511 fqs={1}\n"
    (tmp_path / "console").write_text("".join(stall.format(21509 + moment, moment) for moment in range(4)))
    with pytest.raises(xen_machine.Failed, match=r"no answer in 0\.2 s"):
        machine.said("ready", 0.2)
    (tmp_path / "console").write_text("".join(stall.format(21509, moment) for moment in range(3)))
    with pytest.raises(xen_machine.Panicked, match="Xen hangs, try again"):
        machine.said("ready", 600.0)
    other.close()


class Booted:
    """Stands for the machine, and for the domains, whose third setting meets a panic of Xen on the first machine."""

    def __init__(self, panics: int) -> None:
        self.panics = panics
        self.boots: list[Path] = []
        self.asked: list[XenSetting] = []

    def machine(self, folder: Path, _: object) -> contextlib.nullcontext[None]:
        self.boots.append(folder)
        return contextlib.nullcontext()

    def in_step(self, _: object, setting: XenSetting, __: int) -> InStep:
        self.asked.append(setting)
        if len(self.boots) <= self.panics and setting.scheduler is GANG:
            raise xen_machine.Panicked("Xen panicked")
        return InStep(setting, [EVEN])


class Waiting:
    """Stands for domains that never run."""

    def __init__(self, folder: Path, width: int, count: int) -> None:
        self.width = width

    def boot(self, machine: object) -> None:
        pass

    def under(self, scheduler: DomainScheduler) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()


@pytest.mark.parametrize("panics", [0, 1, gang_xen.BOOTS])
def test_after_a_panic_what_is_left_is_measured_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, panics: int
) -> None:
    """A panic under gang, on the first machine: credit is measured once, gang again on a second machine, and the panic is reported.
    If each machine panics, the study ends with the panic after the last that it may boot."""
    booted = Booted(panics)
    monkeypatch.setattr(gang_xen, "XenDomains", Waiting)
    monkeypatch.setattr(gang_xen, "XenMachine", booted.machine)
    monkeypatch.setattr(gang_xen, "in_step", booted.in_step)
    if panics == gang_xen.BOOTS:
        with pytest.raises(xen_machine.Panicked):
            gang_xen.measure(tmp_path, 2, (2,), 3, (CREDIT, GANG))
        assert len(set(booted.boots)) == gang_xen.BOOTS
        return
    found = gang_xen.measure(tmp_path, 2, (2,), 3, (CREDIT, GANG))
    assert [one.setting.scheduler for one in found.steps] == [CREDIT, GANG]
    assert [one.scheduler for one in booted.asked] == [CREDIT, GANG, GANG][: 2 + panics]
    assert found.panics == ["Xen panicked"] * panics


def test_three_domains_are_next_to_one_that_blocks_under_credit_and_gang() -> None:
    """With four domains the settings have three of them next to one that blocks, which runs as long as all four would one by
    one. Its iterations are not counted, on the simulated hypervisor either."""
    settings = gang_xen.settings(2, (2, 4), SCHEDULERS)
    blocking = [one for one in settings if one.blocking]
    assert [(one.domains, one.scheduler) for one in blocking] == [(3, CREDIT), (3, GANG)]
    assert not [one for one in gang_xen.settings(2, (2,), SCHEDULERS) if one.blocking]
    (blocker,) = gang_xen.blockers(blocking[0], 20)
    assert (blocker.name, blocker.threads) == ("domain4", 2)
    assert blocker.run.seconds == pytest.approx(8.0)
    model = gang_xen.simulated(InStep(blocking[1], []), 5)
    assert model is not None
    assert {one.job.name for one in model.done} == {"domain1", "domain2", "domain3"}


def test_domains_of_a_real_xen_log_all_iterations(tmp_path: Path) -> None:
    """Two domains of two virtual processors run to their ends under every scheduler of Xen and the agent's, pinned thread by thread,
    and move from pool to pool; a domain alone is in step."""
    if reason := xen_machine.missing():
        pytest.skip(reason)
    schedulers = (*SCHEDULERS, ADAPTIVE)
    found = gang_xen.measure(tmp_path, 2, (2,), 3, schedulers).steps
    assert [one.setting.scheduler for one in found] == list(schedulers)
    for one in found:
        assert all(max(starts) - min(starts) <= 0.01 for starts in one.begun)
        for seen in (one.done, one.counted):
            assert [[len(ends) for ends in done.ends] for done in seen] == [[3, 3], [3, 3]]
    assert found[0].mean.mean == 1.0
