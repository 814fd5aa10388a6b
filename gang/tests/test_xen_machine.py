"""A real Xen, emulated: dom0 runs commands on this machine's files, and pools schedule whole sockets."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import xen_machine
from topolane_gang.study.xen_machine import NATIVE, Cores, Failed, XenMachine, missing, search_path
from waiting import until
from xen_machine import Booted


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Booted]:
    with xen_machine.booted(tmp_path_factory.mktemp("xen")) as booted:
        yield booted


def test_commands_run_in_dom0_on_this_machines_files(machine: Booted) -> None:
    """Rule: what a command prints and its exit code come back; dom0 reads the files of this machine and writes to none
    of them; Python there imports the engine."""
    assert "Domain-0" in machine.run("xl list")
    assert machine.again(lambda dom0: dom0.tried("echo out; exit 3")) == (3, "out\n")
    with pytest.raises(Failed, match="false: ended with 1"):
        machine.run("false")
    assert machine.run(f"cat {__file__}") == Path(__file__).read_text()
    here = Path(machine.folder) / "written"
    machine.run(f"echo there >{here}; cat {here}")
    assert not here.exists()
    assert (
        machine.run(f"{xen_machine.PYTHON} -c 'import topolane._engine; print(\"imported\")'") == "imported\n"
    )


@pytest.mark.parametrize("scheduler", ["credit", "credit2"])
@pytest.mark.parametrize("granularity", ["cpu", "socket"])
def test_a_pool_of_the_second_socket_has_the_scheduler_and_the_granularity(
    machine: Booted, scheduler: str, granularity: str
) -> None:
    """Rule: the pool has all cores of the second socket, under this scheduler, as many at a time as the granularity
    says; dom0 keeps the first socket."""
    said = machine.run(f"sh {NATIVE}/pool {scheduler} {granularity} 0 2 3 && xl cpupool-list -c").splitlines()
    assert said[1].split() == ["gangs", "2", scheduler, "y", "0"]
    assert said[2] == granularity
    assert [line.split() for line in said[4:]] == [["Pool-0", "0,1"], ["gangs", "2,3"]]


def test_a_machine_that_does_not_boot_says_what_its_console_said(tmp_path: Path) -> None:
    """Rule: where dom0 is not ready in time, the failure has the end of the console, and no process stays."""
    with pytest.raises(Failed, match=r"no answer in 3 s"):
        XenMachine(tmp_path, Cores(2), boot=3.0)
    assert not programs_of(tmp_path)


def test_a_machine_ends_with_the_process_that_booted_it(tmp_path: Path) -> None:
    """Rule: SIGTERM to Python ends QEMU and virtiofsd too."""
    if reason := missing():
        pytest.skip(reason)
    boots = f"from pathlib import Path; XenMachine(Path({str(tmp_path)!r}), Cores(2))"
    script = f"from topolane_gang.study.xen_machine import Cores, XenMachine; {boots}"
    around = os.environ | {"PYTHONPATH": search_path()}
    with subprocess.Popen([sys.executable, "-c", script], env=around) as booting:
        until(lambda: (tmp_path / "commands").exists())
        assert len(programs_of(tmp_path)) == 3
        booting.terminate()
    until(lambda: not programs_of(tmp_path))


def programs_of(folder: Path) -> list[str]:
    """The commands of the processes that have a folder in their arguments."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            command = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if str(folder) in command:
                found.append(command)
    return found
