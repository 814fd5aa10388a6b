"""Domains of a real Xen as gangs: an agent in dom0 of an emulated machine."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import xen_machine
from quiet_cores import QuietCores
from waiting import IN_EMULATION
from xen_machine import Booted

CHECKS = Path(__file__).with_name("xen_checks.py")
COMPILED = (
    "-O1",
    "-ffreestanding",
    "-fno-pic",
    "-no-pie",
    "-mno-red-zone",
    "-mno-sse",
    "-fno-stack-protector",
)
LINKED = ("-nostdlib", "-static", "-Wl,--build-id=none,-Ttext=0x100000")

if shutil.which("cc") is None:
    pytest.skip("cc is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def dom0(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Booted, Path]]:
    """A machine, and a program for domains that its dom0 can read."""
    folder = tmp_path_factory.mktemp("xen")
    program = folder / "spin"
    source = Path(__file__).with_name("pv_spin.c")
    subprocess.run(["cc", *COMPILED, *LINKED, "-o", program, source], check=True)
    with xen_machine.booted(folder) as machine:
        yield machine, program


def check(dom0: tuple[Booted, Path], name: str, python: str = xen_machine.PYTHON) -> str:
    """Runs a function of xen_checks.py in dom0. Returns what it printed."""
    machine, program = dom0
    bound = f"TOPOLANE_TEST_DEADLINE={IN_EMULATION}"
    said = machine.run(f"{bound} {python} {CHECKS} {name} {program}", 2 * IN_EMULATION)
    assert "all is well" in said, said
    return said


def check_alone(dom0: tuple[Booted, Path], name: str) -> None:
    """The same with mounts of its own."""
    check(dom0, name, f"unshare -m env {xen_machine.PYTHON}")


def test_a_domain_waits_paused_for_its_slice_and_is_left_as_it_was(dom0: tuple[Booted, Path]) -> None:
    """Rule: a domain without a slice is paused and gets nothing done. When it is let go, or the agent ends, it runs, in the
    pool, with the affinity and the weight that it had, and the cores are back in dom0's pool."""
    check(dom0, "pauses")


def test_busy_domains_take_turns_by_their_weights_under_adaptive(dom0: tuple[Booted, Path]) -> None:
    """Rule: domains that compute all the time are gangs under `adaptive`; one of weight 3 has three times the CPU time
    of one of weight 1."""
    quiet = QuietCores(dom0[0].processes())
    said = check(dom0, "turns")
    ratio = float(said.partition("the shares are as ")[2].split()[0])
    quiet.judge(2 < ratio < 4.5, ratio)


def test_nothing_stays_paused_when_the_agent_is_killed(dom0: tuple[Booted, Path]) -> None:
    """Rule: after kill -9 of the agent, its watchdog lets the domains run and puts domains and cores back."""
    check(dom0, "killed")


def test_the_next_agent_lets_all_run_when_the_watchdog_was_killed_too(dom0: tuple[Booted, Path]) -> None:
    """Rule: after kill -9 of the agent and its watchdog, the next agent prepares its pool, and the paused domain runs where
    it was before."""
    check(dom0, "both_killed")


def test_nothing_stays_paused_when_the_library_was_removed(dom0: tuple[Booted, Path]) -> None:
    """Rule: the watchdog lets domains run also if libxenctrl was removed since the agent started."""
    check_alone(dom0, "library_removed")


def test_an_agent_that_dies_at_its_start_keeps_no_cores(dom0: tuple[Booted, Path]) -> None:
    """Rule: SIGTERM while the pool is being made: the cores are back in dom0's pool."""
    check_alone(dom0, "killed_at_start")


def test_domains_run_while_the_agent_is_silent_and_no_pause_is_counted_twice(
    dom0: tuple[Booted, Path],
) -> None:
    """Rule: while the agent is stopped, no domain is paused. When it goes on and ends later, none is left paused, although
    Xen counts pauses."""
    check(dom0, "silent")


def test_a_domain_that_dies_in_its_pause_is_a_job_that_ended(dom0: tuple[Booted, Path]) -> None:
    """Rule: the job of a domain that is destroyed ends, paused or not, and the others have its time. A domain that comes
    again with the same UUID is another job."""
    check(dom0, "dies")


def test_xen_switches_whole_sockets_under_gang(dom0: tuple[Booted, Path]) -> None:
    """Rule: the pool has the granularity `socket`, the slice and the weights that were asked for."""
    check(dom0, "switched_by_xen")


def test_the_commands_of_the_guide_run_domains(dom0: tuple[Booted, Path]) -> None:
    """Rule: `gang run --xen`, `add --xen`, `list` and `stop` do as the guide says; an unknown domain is one sentence and exit
    code 2."""
    check(dom0, "commands")


def test_bad_input_is_refused_in_a_sentence(dom0: tuple[Booted, Path]) -> None:
    """Rule: domains and cores that cannot be had are refused in words that name them, and nothing is changed."""
    check(dom0, "bad_input")


def test_missing_tools_are_named(dom0: tuple[Booted, Path]) -> None:
    """Rule: without xl, without libxenctrl of the running Xen, with a hypfs that refuses writes, or a Xen that refuses a
    core, the agent says so and leaves the pools as they were."""
    check_alone(dom0, "without_tools")
