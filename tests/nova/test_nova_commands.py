"""`topolane nova status`, `explain`, `plan` and `apply` through openstacksdk, on a whole Nova that placed groups by itself."""

from __future__ import annotations

import collections
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cloud_process import HOSTS, LEAVES, CloudProcess
from placements import COMPACT, ISOLATED, SPREAD, STOCK, crossed, hops, leaves, ours, tree, write
from topolane.cluster.room_files import BEGIN, RoomJournal, journal_of, sum_of
from topolane.nova.plan_apply import MIGRATE, MigrationApplying
from waiting import until

TREE = tree(LEAVES, leaves_in_pod=2)


@pytest.fixture
def cloud(running: CloudProcess) -> Iterator[CloudProcess]:
    """The cloud with Nova's own weighers, under which groups are scattered, and our filter for the moves."""
    running.schedule_by(STOCK)
    yield running
    running.clear()


@pytest.fixture
def nova(cloud: CloudProcess, tmp_path: Path) -> Any:
    """Runs a command that must end with the code and prints JSON; without code, gives all it said."""

    def run(*words: str, code: int = 0) -> Any:
        ended, output, errors = cloud.command(*words, "--json", directory=str(tmp_path))
        assert ended == code, errors
        return json.loads(output) if code < 2 else errors

    return run


def test_a_scattered_group_is_planned_together_and_brought_there(
    cloud: CloudProcess, nova: Any, tmp_path: Path
) -> None:
    """The plan's last hops are what the group has in the end; each migration starts where the one before ended,
    none passes above the start, and no shorter sum of hops is left to be had. All but those on the fullest leaf
    move, and none twice."""
    servers = cloud.boot(8, cloud.group("solver"), hints=COMPACT)
    found = nova("status", "--svg", "tree.svg")
    assert "solver" in (tmp_path / "tree.svg").read_text()
    (job,), (row,) = found["running"], found["hops"]
    assert (job["job"], job["size"], row["hops"]) == ("solver", 8, hops(TREE, list(servers.values())))
    assert (job["policy"], sorted(job["ranks"])) == ("compact", sorted(servers.values()))
    assert row["leaves"] == len(leaves(TREE, servers.values()))
    plan = nova("plan", "--out", "plan.json")
    moves = plan["migrations"]
    on_leaf = collections.Counter(TREE[host][0] for host in servers.values())
    assert len({move["server"] for move in moves}) == len(moves) == 8 - max(on_leaf.values())
    assert len(nova("plan", "--most", "1")["migrations"]) == 1
    assert nova("plan", "--least-gain", "1000")["migrations"] == []
    assert moves and moves[0]["before"] == row["hops"]
    assert all(one["after"] == other["before"] for one, other in itertools.pairwise(moves))
    assert all(move["after"] <= row["hops"] for move in moves)
    done = nova("apply", "plan.json", "--at-once", "3")
    assert done["done"] and done["steps"][-1] == f"{len(moves)} migrations made."
    where = cloud.hosts(list(servers))
    assert hops(TREE, list(where.values())) == moves[-1]["after"] == 0
    assert all(where[move["server"]] == move["target"] for move in moves)
    assert nova("plan")["migrations"] == []


def test_a_plan_that_was_stopped_goes_on_and_skips_what_has_changed(
    cloud: CloudProcess, nova: Any, tmp_path: Path
) -> None:
    """Of a plan of which one migration is done already and one server is gone, the others are made."""
    for _ in range(10):
        servers = cloud.boot(8, cloud.group("solver"), hints=COMPACT)
        plan = nova("plan", "--out", "plan.json")
        if len(plan["migrations"]) > 2:
            break
        cloud.delete(list(servers))  # Nova laid them close together by itself.
    file = tmp_path / "plan.json"
    content = json.loads(file.read_text())
    assert content["migrations"] == plan["migrations"] and len(plan["migrations"]) > 2
    first, gone = plan["migrations"][0], plan["migrations"][2]
    journal = RoomJournal(journal_of(file), sum_of(file), MigrationApplying.STEPS)
    journal.write(BEGIN)
    journal.write(MIGRATE, first["server"])
    cloud.migrate(first["server"], first["target"])
    cloud.delete([gone["server"]])
    said = nova("apply", "plan.json", code=1)
    assert f"Server {first['name']} is on {first['target']}." in said["steps"]
    assert f"({gone['name']}: it is gone)" in said["why"]
    left = [server for server in servers if server != gone["server"]]
    before = plan["start"][plan["migrations"][0]["group"]]
    assert hops(TREE, list(cloud.hosts(left).values())) < before
    assert json.loads(file.read_text()) == content, "the journal keeps account, the plan stays"
    words = nova("apply", "plan.json")["steps"]
    assert words == ["The plan has been carried out already, or given up: nothing is changed."]


def test_an_isolated_group_leaves_the_links_of_others(cloud: CloudProcess, nova: Any) -> None:
    """Nova crosses leaves with both groups; after plan and apply they cross none in common."""
    groups = {name: cloud.boot(4, cloud.group(name), hints=ISOLATED) for name in ("one", "two")}
    for _ in range(3):
        if not nova("plan", "--out", "plan.json")["migrations"]:
            break
        nova("apply", "plan.json")
    one, two = (crossed(TREE, list(cloud.hosts(list(servers)).values())) for servers in groups.values())
    assert not one & two
    assert nova("status")["sharing"]["isolated_sharing"] == []


def test_hosts_of_a_migration_that_is_not_over_count_as_for_the_scheduler(
    cloud: CloudProcess, nova: Any, tmp_path: Path
) -> None:
    """A server left leaf 2 and may come back. Until that is confirmed, its group shares the links of leaf 2 with
    another one, and no group of 40 may have them. The host that a live migration goes to counts too."""
    group = cloud.group("moved")
    (first,) = cloud.boot(1, group, hints=ISOLATED, host=HOSTS[0])
    (second,) = cloud.boot(1, group, hints=ISOLATED, host=HOSTS[18])
    room = ("plan", "--room-for", "40", "--flavor", "whole")
    assert cloud.act(second, "migrate", {"host": HOSTS[1]}) == ("VERIFY_RESIZE", HOSTS[1])
    nova(*room, code=1)
    other = cloud.group("other")
    servers = [
        server
        for host in (HOSTS[19], HOSTS[36])
        for server in cloud.boot(1, other, hints=ISOLATED, host=host)
    ]
    found = nova("status")
    assert {row["job"]: row["may_meet"] for row in found["running"]} == {
        "moved": ["other"],
        "other": ["moved"],
    }
    assert "On those of leaf2 it may meet group moved." in nova("explain", "other")["sentences"]
    ended, output, errors = cloud.command("metrics", "--once", directory=str(tmp_path))
    assert (ended, errors) == (0, "") and "topolane_nova_isolated_jobs_sharing_links 2.0" in output
    said = f"Kept until a migration is over: {HOSTS[18]} ("
    assert said in cloud.command("explain", "moved", directory=str(tmp_path))[1]
    cloud.act(second, "confirmResize")
    assert nova("status")["sharing"]["isolated_sharing"] == []
    cloud.delete(servers)
    assert nova(*room)["migrations"] == []
    target = cloud.begin_migration(first)
    try:
        said = f"Kept until a migration is over: {target} ("
        assert said in cloud.command("explain", "moved", directory=str(tmp_path))[1]
    finally:
        cloud.end_migration(first)
    assert "Kept until" not in cloud.command("explain", "moved", directory=str(tmp_path))[1]


def test_an_evacuated_server_counts_on_its_target_before_nova_says_where_it_is(
    cloud: CloudProcess, tmp_path: Path
) -> None:
    """Nova ends the server's task first, while its host is still the one that is down."""
    group = cloud.group("saved")
    cloud.boot(1, group, hints=ISOLATED, host=HOSTS[0])
    (saved,) = cloud.boot(1, group, hints=ISOLATED, host=HOSTS[18])
    cloud.break_down(HOSTS[18])
    try:
        target = cloud.begin_evacuation(saved)
        try:
            assert cloud.hosts([saved]) == {saved: HOSTS[18]}
            said = f"Kept until a migration is over: {target} ("
            assert said in cloud.command("explain", "saved", directory=str(tmp_path))[1]
        finally:
            cloud.end_evacuation(saved)
        assert "Kept until" not in cloud.command("explain", "saved", directory=str(tmp_path))[1]
    finally:
        cloud.recover(HOSTS[18])


def test_an_evacuation_that_ends_while_it_is_read_is_seen_ended(cloud: CloudProcess, nova: Any) -> None:
    """The server was read on its old host, and its migration when it was over."""
    group = cloud.group("saved")
    cloud.boot(1, group, hints=ISOLATED, host=HOSTS[0])
    (saved,) = cloud.boot(1, group, hints=ISOLATED, host=HOSTS[18])
    cloud.break_down(HOSTS[18])
    try:
        target = cloud.begin_evacuation(saved)
        cloud.end_evacuation_when_asked(saved)
        (job,) = nova("status")["running"]
        assert sorted(job["ranks"]) == sorted([HOSTS[0], target])
        assert cloud.hosts([saved]) == {saved: target}
    finally:
        cloud.recover(HOSTS[18])


def test_a_plan_keeps_off_the_links_of_a_migration_that_is_not_over(
    cloud: CloudProcess, nova: Any, tmp_path: Path
) -> None:
    """Three servers in three pods would have fewer hops on both leaves of another pod, or on one of them. The plan
    leaves them where they are as long as an isolated group may come back to that one."""
    pods = {"A": "1", "B": "1", "C": "2", "D": "3", "E": "4"}
    hosts = dict(zip(HOSTS, "AAABBBCDE", strict=False))
    write(tmp_path / "small.conf", {host: (leaf, f"pod{pods[leaf]}") for host, leaf in hosts.items()})
    group, other = cloud.group("moved"), cloud.group("other")
    cloud.boot(1, group, hints=ISOLATED, host=HOSTS[0])
    (second,) = cloud.boot(1, group, hints=ISOLATED, host=HOSTS[3])
    for host in HOSTS[6:9]:
        cloud.boot(1, other, hints=ISOLATED, host=host)
    assert cloud.act(second, "migrate", {"host": HOSTS[1]}) == ("VERIFY_RESIZE", HOSTS[1])
    plan = ("plan", "--machine", "small.conf")
    assert nova(*plan)["migrations"] == []
    cloud.act(second, "confirmResize")
    assert {move["target"] for move in nova(*plan)["migrations"]} == set(HOSTS[3:6])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("explain", "absent"), "there are 0 server groups 'absent'"),
        (("apply", "absent.json"), "absent.json: No such file or directory"),
        (("apply", "broken.json"), "broken.json: migrations[0]: server is missing"),
        (("plan", "--machine", "absent.toml"), "absent.toml"),
        (("status", "--os-cloud", "elsewhere"), "elsewhere"),
    ],
)
def test_bad_input_is_one_sentence(
    cloud: CloudProcess, nova: Any, tmp_path: Path, words: Any, sentence: str
) -> None:
    (tmp_path / "broken.json").write_text('{"version": 1, "migrations": [{}], "start": {}}')
    said = nova(*words, code=2)
    assert sentence in said and said.strip().count("\n") == 0


def test_a_group_that_is_refused_is_explained(cloud: CloudProcess, nova: Any) -> None:
    """An isolated group has the links between the leaves of a pod, and the other pod has a host too few: the refused group has
    Nova's fault, the free hosts, and the group in its way. When that one has gone, it could be requested again."""
    cloud.schedule_by(ours())
    group = cloud.group("owner")
    owners = [next(iter(cloud.boot(1, group, hints=ISOLATED, host=HOSTS[at]))) for at in (0, 18)]
    cloud.boot(1, host=HOSTS[71])
    refused = cloud.group("refused")
    cloud.ask(36, refused, hints=ISOLATED)
    said = until(lambda: _faulty(nova("explain", "refused")), "the refusal")
    assert "Now 69 nodes have 69 free slots for its servers." in said["sentences"]
    assert said["policy"] == "isolated" and not said["in_the_way"]["has_place"]
    assert [one["job"] for one in said["in_the_way"]["must_end"]] == ["owner"]
    (row,) = nova("status")["waiting"]
    assert (row["job"], row["size"]) == ("refused", 36) and "No valid host" in row["why"]
    cloud.delete(owners)
    assert nova("explain", "refused")["in_the_way"]["has_place"]


def _faulty(said: Any) -> Any:
    return said if any("No valid host" in sentence for sentence in said["sentences"]) else None


def test_what_ours_has_placed_needs_no_move(cloud: CloudProcess, nova: Any) -> None:
    """And a group that is to be spread is not brought together."""
    cloud.schedule_by(ours())
    cloud.boot(16, cloud.group("solver"), hints=COMPACT)
    assert nova("plan")["migrations"] == []
    cloud.boot(2, cloud.group("apart"), hints=SPREAD)
    assert nova("plan")["migrations"] == []
    assert "group apart is to be spread" in nova("plan", "apart", code=2)


def test_hosts_that_no_leaf_lists_are_named(cloud: CloudProcess, nova: Any, tmp_path: Path) -> None:
    """Groups that come there are not placed by the tree. With all hosts on the tree nothing is said."""
    file = tmp_path / "without-two.conf"
    write(file, {host: TREE[host] for host in HOSTS[:-2]})
    words = ("status", "--machine", str(file))
    said = f"hosts that no leaf of the tree lists: {', '.join(HOSTS[-2:])}"
    assert said in cloud.command(*words, directory=str(tmp_path))[1].splitlines()
    assert nova(*words)["off_tree"] == HOSTS[-2:]
    write(file, TREE)
    assert nova(*words)["off_tree"] == []
