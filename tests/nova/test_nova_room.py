"""`topolane nova plan --room-for` on a whole Nova: refused, moved, admitted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cloud_process import HOSTS, CloudProcess, Refused
from placements import COMPACT, ISOLATED, STOCK, crossed, leaves, ours, tree, write

TREE = tree([HOSTS[start : start + 4] for start in range(0, 12, 4)], leaves_in_pod=2)
"""Two leaves of a pod, and one of another; the other hosts of the cloud are not on the topology."""


@pytest.fixture
def file(running: CloudProcess, tmp_path: Path) -> Iterator[Path]:
    file = tmp_path / "small.conf"
    write(file, TREE)
    running.schedule_by(STOCK)
    yield file
    running.clear()


@pytest.fixture
def nova(running: CloudProcess, file: Path, tmp_path: Path) -> Any:
    """Runs a command that must end with the code; what it said, or with code 2 its one sentence."""

    def run(*words: str, code: int = 0) -> str:
        ended, output, errors = running.command(*words, "--machine", str(file), directory=str(tmp_path))
        assert ended == code, output + errors
        return str(errors if code == 2 else output)

    return run


def boot(
    cloud: CloudProcess, name: str, hosts: list[str], hints: dict[str, str], flavor: str = "whole"
) -> dict[str, str]:
    """A group whose servers were booted onto these hosts before there was our filter."""
    group = cloud.group(name)
    servers: dict[str, str] = {}
    for host in hosts:
        servers |= cloud.boot(1, group, flavor, hints=hints, host=host)
    assert list(servers.values()) == hosts
    return servers


@pytest.mark.parametrize("hints", [ISOLATED, COMPACT])
def test_a_refused_group_is_admitted_once_the_plan_is_carried_out(
    running: CloudProcess, file: Path, nova: Any, tmp_path: Path, hints: dict[str, str]
) -> None:
    """Three servers cross both leaves of a pod, the other pod is full. Four hosts are free, two of them in each leaf
    at best, and a second group of four would cross what the first crosses: Nova refuses it. One migration brings
    the three onto one leaf, and the same request is admitted, inside the other."""
    running.boot(1, host=HOSTS[8])
    boot(running, "full", HOSTS[9:12], hints)
    servers = boot(running, "scattered", [HOSTS[0], HOSTS[1], HOSTS[4]], hints)
    running.schedule_by(ours(machine_file=str(file)))
    with pytest.raises(Refused, match="No valid host"):
        running.boot(4, running.group("refused"), hints=ISOLATED)
    # The plan knows no CPUs, so groups that need identical hosts stay.
    (tmp_path / "nova.conf").write_text("[topolane]\ndefault_identical = cpu\n")
    room = ("plan", "--room-for", "4", "--flavor", "whole")
    nova(*room, "--nova-conf", str(tmp_path / "nova.conf"), code=1)
    said = nova(*room, "--out", "plan.json")
    assert "Now, a group of 4 is refused: " in said and "can be placed, for example on node" in said
    (move,) = json.loads((tmp_path / "plan.json").read_text())["migrations"]
    assert servers[move["server"]] == move["source"] == HOSTS[4]
    nova("apply", "plan.json")
    where = running.hosts(list(servers))
    assert where[move["server"]] == move["target"] and not crossed(TREE, list(where.values()))
    admitted = running.boot(4, running.group("admitted"), hints=ISOLATED)
    assert len(leaves(TREE, admitted.values())) == 1 and not crossed(TREE, list(admitted.values()))


def test_who_must_pass_links_of_others_is_forced_if_that_may_be(
    running: CloudProcess, file: Path, nova: Any, tmp_path: Path
) -> None:
    """A pair leaves its leaf for one that an isolated group crosses, and crosses it too until both are there. Our
    filter allows neither to go first: there is no such plan, unless the operator lets links be shared on the way. (Nova forces
    no server onto a host whose memory it would fill to the last MB.)"""
    running.flavor("nearly", 8191)
    owner = boot(running, "owner", HOSTS[:5], ISOLATED, "nearly")
    pair = boot(running, "pair", HOSTS[8:10], ISOLATED, "nearly")
    running.schedule_by(ours(machine_file=str(file)))
    with pytest.raises(Refused, match="No valid host"):
        running.boot(4, running.group("refused"), "nearly", hints=ISOLATED)
    room = ("plan", "--room-for", "4", "--flavor", "nearly", "--out", "plan.json")
    assert "One way to make it had no order" in nova(*room, code=1)
    before = len(running.log("finds no links of its own"))
    assert "1 of them must bypass Nova's filters" in nova(*room, "--share-on-the-way")
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert [move["forced"] for move in plan["migrations"]] == [True, False]
    nova("apply", "plan.json", "--at-once", "2")
    assert len(running.log("finds no links of its own")) == before
    assert {TREE[host] for host in running.hosts(list(pair)).values()} == {TREE[HOSTS[4]]}
    admitted = running.boot(4, running.group("admitted"), "nearly", hints=ISOLATED)
    assert set(admitted.values()) == set(HOSTS[8:12]) and running.hosts(list(owner)) == owner


def test_what_there_is_room_for_needs_no_move(
    running: CloudProcess, file: Path, nova: Any, tmp_path: Path
) -> None:
    boot(running, "scattered", [HOSTS[0], HOSTS[1], HOSTS[4]], ISOLATED)
    assert "room for 4 servers: nothing needs to be moved" in nova(
        "plan", "--room-for", "4", "--flavor", "whole", "--out", "plan.json"
    )
    assert json.loads((tmp_path / "plan.json").read_text())["migrations"] == []
    running.schedule_by(ours(machine_file=str(file)))
    running.boot(4, running.group("new"), hints=ISOLATED)


def test_the_plan_that_gains_most_per_migration_lets_a_larger_group_start(
    running: CloudProcess, file: Path, nova: Any, tmp_path: Path
) -> None:
    """Three servers cross both leaves of a pod and the other pod is full, so an isolated group has at most the three free hosts of one
    leaf. One migration brings the servers onto a leaf, and all five free hosts of the pod may be one group. Then nothing is left to gain,
    and nothing is written."""
    running.boot(1, host=HOSTS[8])
    boot(running, "full", HOSTS[9:12], ISOLATED)
    boot(running, "scattered", [HOSTS[0], HOSTS[1], HOSTS[4]], ISOLATED)
    words = ("plan", "--defragment", "--flavor", "whole", "--out", "plan.json")
    made = json.loads(nova(*words, "--json"))
    assert (made["largest_now"], made["gains"]) == (
        3,
        [{"servers": 5, "migrations": 1, "per_migration": 2.0}],
    )
    said = nova(*words)
    assert "group of 3 servers finds room" in said and "servers gained per migration" in said
    nova("apply", "plan.json")
    (tmp_path / "plan.json").unlink()
    assert "No plan was found" in nova(*words, code=1) and not (tmp_path / "plan.json").exists()
    running.schedule_by(ours(machine_file=str(file)))
    assert len(running.boot(5, running.group("admitted"), hints=ISOLATED)) == 5


def test_what_no_move_helps_is_said_and_nothing_is_written(
    running: CloudProcess, nova: Any, tmp_path: Path
) -> None:
    """Too few hosts; a group whose servers are of another flavor; one that asks for nothing; none of those named;
    more migrations than may be."""
    running.boot(1, host=HOSTS[8])
    boot(running, "full", HOSTS[9:12], ISOLATED)
    boot(running, "scattered", [HOSTS[0], HOSTS[1], HOSTS[4]], ISOLATED)
    room = ("plan", "--room-for", "4", "--flavor", "whole", "--out", "plan.json")
    for words in (
        ("plan", "--room-for", "6", "--flavor", "whole", "--out", "plan.json"),
        (*room, "full"),
    ):
        assert "No room was found" in nova(*words, code=1)
    quarter = json.loads(nova("plan", "--room-for", "5", "--flavor", "quarter", "--json", code=1))
    assert quarter["migrations"] == [] and quarter["room"] is False and quarter["refusal"]
    assert not (tmp_path / "plan.json").exists()
    assert "Then the group can be placed" in nova(*room, "scattered")


def test_a_plan_that_has_changed_under_way_ends(running: CloudProcess, nova: Any, tmp_path: Path) -> None:
    """Of migrations that need each other none is made if one of them is no longer possible."""
    boot(running, "full", HOSTS[8:12], ISOLATED)
    servers = boot(running, "scattered", [HOSTS[0], HOSTS[1], HOSTS[4]], ISOLATED)
    nova("plan", "--room-for", "4", "--flavor", "whole", "--out", "plan.json")
    plan = json.loads((tmp_path / "plan.json").read_text())
    assert plan["in_order"] is True
    (move,) = plan["migrations"]
    gone = {**move, "server": "00000000-0000-0000-0000-000000000000"}
    plan["migrations"] = [gone, move]
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    said = json.loads(nova("apply", "plan.json", "--at-once", "2", "--json", code=1))
    assert said["why"].startswith(f"the plan is no longer true: server {gone['name']}: it is gone.")
    assert running.hosts(list(servers)) == servers and not (tmp_path / "plan.json.journal").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--room-for", "4"), "--room-for needs the flavor of the servers: give --flavor"),
        (("--flavor", "whole"), "--flavor needs --room-for"),
        (("--room-for", "4", "--flavor", "hpc"), "there is no flavor 'hpc'"),
        (
            ("--room-for", "4", "--flavor", "whole", "--zone", "north"),
            "there is no availability zone 'north'",
        ),
        (
            ("--room-for", "4", "--flavor", "whole", "--least-gain", "3"),
            "--least-gain cannot be combined with --room-for",
        ),
        (
            ("--room-for", "4", "--defragment", "--flavor", "whole"),
            "--room-for cannot be combined with --defragment",
        ),
        (("--defragment",), "--defragment needs the flavor of the servers: give --flavor"),
        (("--zone", "nova"), "--zone needs --room-for or --defragment"),
        (("--room-for", "4", "--flavor", "whole", "absent"), "there are 0 server groups 'absent'"),
        (("--room-for", "0", "--flavor", "whole"), "0 is not in the range"),
    ],
)
def test_bad_input_is_one_sentence(nova: Any, words: tuple[str, ...], sentence: str) -> None:
    said = nova("plan", *words, code=2)
    assert sentence in said
