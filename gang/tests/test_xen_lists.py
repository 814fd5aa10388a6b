"""What needs no Xen of the gangs of domains: its lists, and what is refused elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from topolane._engine import GangAgent, GangLimits, InputError
from topolane_gang import watchdog, xen
from topolane_gang.cli import command

UUIDS = ("00000000-0000-0000-0000-000000000000", "293dfa8a-ea72-11f1-ba67-525400123456")
LISTED = f"""\
Name                                        ID   Mem VCPUs	State	Time(s)   UUID                            Reason-Code	Security Label         Cpupool
Domain-0                                     0   900     1     r-----      65.2 {UUIDS[0]}        -                -          Pool-0
a b                                          1     8     2     --p---     412.1 {UUIDS[1]}        -                -topolane-gang-2-76b5cd62
c                                           12     8     4     -b----      0.0 {UUIDS[1]}        -  system_u:system_r:domU_t          Pool-0
d                                           13     8     1     r-----      1.0 {UUIDS[1]}        -                -           night 2
"""
POOLS = """\
Name               CPUs   Sched     Active   Domain count
Pool-0               1   credit2       y          1
night                0    credit       y          0
night 2              2      null       y          1
topolane-gang-2-76b5cd62  2    credit       y          3
"""
POOLS_WITH_CORES = f"""\
Name               CPU list
Pool-0             0
{"night":19}
night 2            1,2
topolane-gang-2-76b5cd623,4
"""
DOM0 = Path("/proc/xen/capabilities")


def test_domains_are_read_from_the_list_of_xl() -> None:
    """Rule: a line of `xl list -v -c` (Xen 4.17) is a domain, also if its name has a blank, if its pool's name has one or
    leaves none, or if it has a security label."""
    assert xen.parse_domains(LISTED) == [
        xen.Domain("Domain-0", 0, UUIDS[0], 1, "Pool-0"),
        xen.Domain("a b", 1, UUIDS[1], 2, "topolane-gang-2-76b5cd62"),
        xen.Domain("c", 12, UUIDS[1], 4, "Pool-0"),
        xen.Domain("d", 13, UUIDS[1], 1, "night 2"),
    ]


def test_pools_are_read_from_the_lists_of_xl() -> None:
    """Rule: a line of `xl cpupool-list` (Xen 4.17) is a pool, also if its name has a blank, begins with another's name, or is
    so long that the cores follow it without a blank."""
    assert xen.parse_pools(POOLS, POOLS_WITH_CORES) == {
        "Pool-0": ([0], "credit2"),
        "night": ([], "credit"),
        "night 2": ([1, 2], "null"),
        "topolane-gang-2-76b5cd62": ([3, 4], "credit"),
    }


@pytest.mark.skipif(DOM0.exists(), reason="this machine runs under Xen")
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--xen", "--cores", "0"], "this is not dom0 of a Xen"),
        (["--xen", "--", "true"], "--xen starts no jobs"),
        (
            ["--xen", "--cores", "0", "--policy", "gang", "--delay", "1"],
            "--delay is for an agent that switches",
        ),
        (["--switch-by", "pause"], "--switch-by pause is for domains of Xen: give --xen"),
    ],
)
def test_an_agent_for_domains_is_refused_elsewhere(words: list[str], sentence: str, tmp_path: Path) -> None:
    """Rule: `gang run --xen` outside dom0, with a command, or ways to switch without --xen: a sentence, no agent."""
    ran = CliRunner().invoke(command, ["run", "--socket", str(tmp_path / "socket"), *words])
    assert isinstance(ran.exception, InputError)
    assert sentence in str(ran.exception)
    assert not (tmp_path / "socket").exists()


@pytest.mark.parametrize("before", [[], ["--xen", "--cores", "0"]])
@pytest.mark.parametrize("option", [["--threads", "2"], ["--weight", "1"], ["--watch"], ["--name", "a"]])
def test_options_of_a_command_are_refused_without_one(
    before: list[str], option: list[str], tmp_path: Path
) -> None:
    """Rule: `gang run` without a command refuses --threads, --weight, --watch and --name in a sentence, with and without
    --xen, and starts no agent."""
    ran = CliRunner().invoke(command, ["run", "--socket", str(tmp_path / "socket"), *before, *option])
    assert isinstance(ran.exception, InputError)
    assert str(ran.exception) == f"{option[0]} is for a command after --, and there is none"
    assert not (tmp_path / "socket").exists()


def test_the_threads_of_a_domain_are_not_chosen() -> None:
    """Rule: `gang add --xen --threads` is refused before an agent is asked."""
    ran = CliRunner().invoke(command, ["add", "--xen", "web1", "--threads", "2"])
    assert isinstance(ran.exception, InputError)
    assert (
        str(ran.exception) == "--threads is not for --xen: the threads of a domain are its virtual processors"
    )


def test_an_agent_of_processes_takes_no_domain_and_a_missing_library_is_named() -> None:
    """Rule: the engine says that it runs no domains, or which library it lacks."""
    agent = GangAgent("gang", [min(os.sched_getaffinity(0))], GangLimits())
    try:
        with pytest.raises(InputError, match="it is a domain of Xen, and this agent runs none"):
            agent.add("job", domain=(1, bytes(16)))
    finally:
        agent.close()
    with pytest.raises(InputError, match="libxenctrl.so.0.0 cannot be loaded"):
        GangAgent("gang", [0], GangLimits(), xen="libxenctrl.so.0.0")


def test_a_record_of_domains_is_harmless_where_xen_is_gone() -> None:
    """Rule: a watchdog, or the next agent, that finds domains in a file but no Xen goes on."""
    one = {"number": 1, "uuid": UUIDS[1], "pool": "Pool-0", "restore": []}
    state = {"domains": [one], "library": "libxenctrl.so.0.0", "pool": "topolane-1", "homes": {"2": "Pool-0"}}
    watchdog.thaw(state)
    watchdog.put_back(state)
