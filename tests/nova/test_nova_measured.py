"""Measured programs: whose traffic they are, and how they are read in the background."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nova", reason="the extra nova-test is not installed")
from matrices import write_matrix
from topolane.mpi.host_traffic import between_hosts
from topolane.nova import group_traffic
from topolane.nova.measured import DAY, MeasuredProgram, ServerNames, profile_of, usable
from topolane.nova.measured_reader import MeasuredReader
from topolane.nova.server_names import _addresses
from waiting import DEADLINE, until

NOW = 1_800_000_000.0


def program(hosts: list[str], sent: list[tuple[int, int, float]], **fields: Any) -> MeasuredProgram:
    """A program that has ended, on these hosts."""
    usual = {"id": "p", "name": "solver", "ended": NOW, "ranks": len(hosts), "reported": len(hosts)}
    return MeasuredProgram.of(usual | {"hosts": hosts, "addresses": [""] * len(hosts), "sent": sent} | fields)


def server(name: str, *addresses: str) -> ServerNames:
    return ServerNames(f"id-{name}", frozenset([name, f"id-{name}"]), frozenset(addresses))


def profile(programs: list[MeasuredProgram], members: str, name: str | None = None) -> Any:
    """The profile of servers with names of one letter, as a matrix; None if there is none."""
    found = profile_of(programs, [server(one) for one in members], name)
    if found is None:
        return None
    sender, receiver, size, _ = found.traffic.arrays()
    matrix = np.zeros((found.traffic.ranks, found.traffic.ranks))
    matrix[sender, receiver] = size
    return matrix.tolist()


def test_ranks_become_hosts_in_the_order_of_their_lowest_rank() -> None:
    """Ranks 0 and 2 are on b, 1 on a, and 3 never reported. Bytes within b and those of rank 3 do not count."""
    sender, receiver = np.array([0, 1, 2, 0, 3]), np.array([1, 2, 0, 3, 1])
    found = between_hosts(["b", "a", "b", ""], sender, receiver, np.array([10.0, 5.0, 99.0, 7.0, 7.0]))
    assert found == (["b", "a"], [(0, 1, 10.0), (1, 0, 5.0)])


def test_a_host_is_the_member_of_its_name() -> None:
    """The program's hosts are b and a, with a domain and in capitals; the group's order is a, b."""
    assert profile([program(["B.example.org", "a"], [(0, 1, 8.0)])], "ab") == [[0, 0], [8, 0]]


def test_a_host_is_the_member_of_its_address() -> None:
    """A host that calls itself by its address, and one whose address the manager knows."""
    measured = program(["10.0.0.2", "guest1"], [(0, 1, 8.0)], addresses=["", "10.0.0.1"])
    members = [server("a", "10.0.0.1"), server("b", "10.0.0.2")]
    found = profile_of([measured], members, None)
    assert found is not None
    assert [array.tolist() for array in found.traffic.arrays()[:3]] == [[1], [0], [8.0]]


def test_a_name_does_not_count_if_the_address_is_another_server_s() -> None:
    """Two projects use the names a and b. The program's a has an address that the group's a does not have, so a is not
    its host; b has the server's address in another notation. The hosts are then no members, a takes the next row. With
    the addresses of other servers altogether, the program is not the group's."""
    measured = program(["a", "b"], [(0, 1, 8.0)], addresses=["10.9.0.1", "fd00:0::2"])
    members = [server("a", "10.0.0.1"), server("b", "10.0.0.2", "fd00::2")]
    said: list[tuple[str, str]] = []

    def found(one: MeasuredProgram, servers: list[ServerNames]) -> object:
        profile = profile_of([one], servers, None, lambda *words: said.append(words))
        return None if profile is None else [array.tolist() for array in profile.traffic.arrays()[:3]]

    assert found(measured, [members[1], members[0]]) == [[1], [0], [8.0]]
    ((about, sentence),) = said
    assert about == "p" and "a of program solver has the address 10.9.0.1, server id-a of that" in sentence
    others = program(["a", "b"], [(0, 1, 8.0)], addresses=["10.9.0.1", "10.9.0.2"])
    assert found(others, members) is None


@pytest.mark.parametrize("address", ["", "10.0.0.1", "fd00::9", "127.0.0.1", "fe80::1", "a.example.org"])
def test_a_name_counts_unless_the_address_contradicts(address: str) -> None:
    """The same address, none, one of another IP version, and one that says nothing."""
    measured = program(["a", "b"], [(0, 1, 8.0)], addresses=[address, ""])
    said: list[object] = []
    found = profile_of(
        [measured], [server("b"), server("a", "10.0.0.1")], None, lambda *words: said.append(words)
    )
    assert found is not None and [array.tolist() for array in found.traffic.arrays()[:2]] == [[1], [0]]
    assert said == []


def test_an_address_beats_a_name() -> None:
    """A host called a that has the address of server b, while a has another: it is b."""
    measured = program(["a", "c"], [(0, 1, 8.0)], addresses=["10.0.0.2", ""])
    members = [server("a", "10.0.0.1"), server("b", "10.0.0.2")]
    found = profile_of([measured], members, None)
    assert found is not None and [array.tolist() for array in found.traffic.arrays()[:2]] == [[1], [0]]


def test_a_contradiction_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    for program_id in ("once", "once", "other"):
        group_traffic._say_once(program_id, f"Program {program_id}.")
    assert [record.getMessage() for record in caplog.records] == ["Program once.", "Program other."]


def test_hosts_that_are_no_members_go_to_the_next_members() -> None:
    """Of the hosts a, x, c, y two are members. x is the first member without a host, d; y is the next that is added."""
    measured = program(list("axcy"), [(0, 1, 1.0), (2, 3, 2.0)])
    assert profile([measured], "acd") == [[0, 0, 1, 0], [0, 0, 0, 2], [0, 0, 0, 0], [0, 0, 0, 0]]


def test_a_member_that_was_not_measured_has_no_traffic() -> None:
    """A group that is larger than the program: the third member has an empty row, so its place does not matter."""
    assert profile([program(["a", "b"], [(0, 1, 8.0)])], "abc") == [[0, 8, 0], [0, 0, 0], [0, 0, 0]]


def test_a_program_of_others_is_not_used() -> None:
    """One of three hosts is a member: less than half. With two of four it is the group's."""
    assert profile([program(list("axy"), [(0, 1, 1.0)])], "ab") is None
    assert profile([program(list("axyb"), [(0, 3, 1.0)])], "ab") is not None


def test_several_programs_of_a_group_are_added_up() -> None:
    """Each with hosts of its own order."""
    programs = [program(["a", "b"], [(0, 1, 8.0)]), program(["b", "a"], [(0, 1, 3.0), (1, 0, 1.0)])]
    assert profile(programs, "ab") == [[0, 9], [3, 0]]


def test_without_one_of_its_own_the_newest_of_the_name_counts() -> None:
    """The group is new, so it has the program that topolane:traffic names: its hosts in the group's order."""
    programs = [program(["x", "y"], [(0, 1, 8.0)]), program(["v", "w"], [(0, 1, 3.0)])]
    assert profile(programs, "ab") is None
    assert profile(programs, "ab", "other") is None
    assert profile(programs, "ab", "solver") == [[0, 8], [0, 0]]
    assert profile([*programs, program(["a", "b"], [(1, 0, 1.0)])], "ab", "solver") == [[0, 0], [1, 0]]


def test_old_partial_and_silent_programs_are_not_used() -> None:
    """Of five programs the one that runs and the one of yesterday stay, in this order."""
    two = (["a", "b"], [(0, 1, 8.0)])
    programs = [
        program(*two, id="yesterday", ended=NOW - DAY),
        program(*two, id="stale", ended=NOW - 31 * DAY),
        program(*two, id="partial", ranks=3),
        program(["a", "b"], [], id="silent"),
        program(*two, id="runs", ended=None),
    ]
    assert [one.id for one in usable(programs, NOW, 30.0)] == ["runs", "yesterday"]


@pytest.mark.parametrize(
    "sent", [[(0, 2, 1.0)], [(-1, 0, 1.0)], [(0, 1, float("nan"))], [(0, 1, -1.0)], [(0, 1)], "ab", None]
)
def test_damaged_counts_are_refused(sent: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        program(["a", "b"], sent)


def test_the_addresses_of_a_server_are_those_that_nova_keeps() -> None:
    """Of every port and subnet, fixed and floating; what cannot be read has none."""
    ports = [[["10.0.0.1", "fd00::1"], ["10.1.0.1"]], [["10.2.0.1"]]]
    network = [
        {"network": {"subnets": [{"ips": [{"address": one} for one in ips]} for ips in subnets]}}
        for subnets in ports
    ]
    network[1]["network"]["subnets"][0]["ips"][0]["floating_ips"] = [{"address": "203.0.113.1"}]
    found = list(_addresses(json.dumps(network)))
    assert found == ["10.0.0.1", "fd00::1", "10.1.0.1", "10.2.0.1", "203.0.113.1"]
    for damaged in (None, "", "{", "3", '[{"network": null}]', "[[]]"):
        assert list(_addresses(damaged)) == []


def options(source: str, **changed: Any) -> Any:
    """The options of nova.conf that concern what was measured."""
    usual = {"measured": source, "measured_token_file": None, "measured_ca": None, "measured_days": 30.0}
    return SimpleNamespace(**usual | {"measured_interval": 0.2, "measured_timeout": DEADLINE} | changed)


def read(source: str, known: list[str] | None = None, **changed: Any) -> dict[str, Any]:
    """What the process that reads prints."""
    question = {"source": source, "token_file": None, "ca": None, "days": 30.0, "seconds": DEADLINE}
    done = subprocess.run(
        [sys.executable, "-m", "topolane.nova.measured_sources"],
        input=json.dumps(question | {"known": known or []} | changed),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_a_folder_of_matrices_is_read(tmp_path: Path) -> None:
    """Newest first. A file that is too old is not listed, one that is damaged is named, one that is known is not
    read again."""
    write_matrix(tmp_path / "new.csv", ["a", "b"])
    write_matrix(tmp_path / "older.csv", ["c", "d"], days_ago=1.0)
    write_matrix(tmp_path / "old.csv", ["e", "f"], days_ago=31.0)
    (tmp_path / "damaged.csv").write_text("from,to,bytes\n0,1,x\n")
    found = read(str(tmp_path))
    assert [one["hosts"] for one in found["programs"]] == [["a", "b"], ["c", "d"]]
    assert found["programs"][0]["sent"] == [[0, 1, 100.0]]
    (skipped,) = found["skipped"]
    assert "damaged.csv:2" in skipped
    again = read(str(tmp_path), known=[one["id"] for one in found["programs"]])
    assert again["programs"] == [] and len(again["ids"]) == 3


@pytest.mark.parametrize(
    "source, sentence",
    [
        ("/no/such/folder", "measured = /no/such/folder: No such file or directory"),
        ("http://manager:9762", "neither unix:/path, https://host:port nor http://localhost:port"),
        ("https://localhost:x", "measured = 'https://localhost:x'"),
        ("unix:/no/such/socket", "manager unix:/no/such/socket: no answer: No such file or directory"),
    ],
)
def test_a_source_that_cannot_be_read_is_named(source: str, sentence: str) -> None:
    assert sentence in read(source)["problem"]


def test_a_request_never_waits_and_a_problem_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is missing at first: requests get an empty answer before it is read, and one warning is logged however
    often it is read. Then a matrix is there. Then the folder is gone again: what was read stays."""
    folder = tmp_path / "measured"
    asked = options(str(folder))
    reader = MeasuredReader(asked)
    answered, reads, answer = threading.Event(), [], reader._answer

    def after_the_request() -> dict[str, Any]:
        assert answered.wait(DEADLINE)
        reads.append(1)
        return answer()

    monkeypatch.setattr(reader, "_answer", after_the_request)
    assert reader.programs() == []
    answered.set()
    until(lambda: len(reads) > 3, "it is read again and again")
    problems = [record for record in caplog.records if "cannot be read" in record.getMessage()]
    assert len(problems) == 1 and "No such file or directory" in problems[0].getMessage()
    folder.mkdir()
    write_matrix(folder / "m.csv", ["a", "b"])
    until(reader.programs)
    (folder / "m.csv").rename(tmp_path / "m.csv")
    folder.rmdir()
    until(lambda: len([r for r in caplog.records if "cannot be read" in r.getMessage()]) == 2)
    assert [one.hosts for one in reader.programs()] == [("a", "b")]
    asked.measured = None


def test_a_source_that_hangs_is_given_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A pipe without a writer stops the process that reads, not the scheduler: it is killed, and that is logged."""
    os.mkfifo(tmp_path / "m.csv")
    asked = options(str(tmp_path), measured_timeout=0.5)
    reader = MeasuredReader(asked)
    assert reader.programs() == []
    until(lambda: "no answer within 0.5 s" in caplog.text)
    asked.measured = None
