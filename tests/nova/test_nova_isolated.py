"""Isolated groups: no leaf and no pod is crossed by two groups."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from cloud_process import HOSTS, CloudProcess, Refused
from placements import COMPACT, ISOLATED, crossed, leaves, ours, tree, write

SMALL = tree([HOSTS[start : start + 4] for start in range(0, 12, 4)], leaves_in_pod=2)
TREE = tree([HOSTS[start : start + 2] for start in range(0, 72, 2)], leaves_in_pod=6)


@pytest.fixture
def scheduler(cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.getbasetemp() / "isolated.conf"
    write(file, TREE)
    cloud.schedule_by(ours(machine_file=str(file)))
    return file


def test_no_two_groups_cross_a_leaf_or_a_pod(cloud: CloudProcess, scheduler: Path) -> None:
    """Groups larger than a leaf, while servers without a group and a compact group lie around."""
    cloud.boot(2)
    groups = []
    for number, (count, hints) in enumerate([(3, COMPACT), (3, ISOLATED), (2, ISOLATED), (3, ISOLATED)]):
        groups.append(set(cloud.boot(count, cloud.group(f"group{number}"), hints=hints).values()))
    assert all(len(crossed(TREE, groups[number])) == 2 for number in (0, 1, 3))
    for one, other in itertools.combinations(groups, 2):
        assert not crossed(TREE, one) & crossed(TREE, other)


def test_what_would_cross_owned_links_is_refused(cloud: CloudProcess, scheduler: Path) -> None:
    """Of a machine of three leaves an isolated group of 5 owns the links of two, 3 hosts of which are free.

    Two VMs find room inside one of the leaves. Five more do not fit anywhere else, though 5 hosts are free on the
    machine and 60 outside it; the log says so. When the first group is deleted, its links are free at once.
    """
    write(scheduler, SMALL)
    first = cloud.boot(5, cloud.group("first"), hints=ISOLATED)
    assert len(crossed(SMALL, list(first.values()))) == 2
    inside = cloud.boot(2, cloud.group("inside"), hints=ISOLATED)
    assert len(leaves(SMALL, inside.values())) == 1
    before = len(cloud.log("finds no links of its own"))
    with pytest.raises(Refused, match="No valid host"):
        cloud.boot(5, cloud.group("second"), hints=ISOLATED)
    assert len(cloud.log("finds no links of its own")) > before
    cloud.delete(list(first))
    again = cloud.boot(5, cloud.group("third"), hints=ISOLATED)
    assert not crossed(SMALL, list(again.values())) & crossed(SMALL, list(inside.values()))


def test_no_two_groups_share_the_link_of_a_host(cloud: CloudProcess, scheduler: Path) -> None:
    """One VM to a host, a quarter of it: a second group finds room on the same hosts, and may not take it.

    Nor may a compact group; one that no isolated group is near of does.
    """
    used: set[str] = set()
    for number, hints in enumerate([ISOLATED, ISOLATED, COMPACT]):
        hosts = set(cloud.boot(2, cloud.group(f"quarters{number}"), "quarter", hints=hints).values())
        assert len(hosts) == 2
        assert not hosts & used
        used |= hosts


def test_a_compact_group_is_refused_what_only_owned_links_could_carry(
    cloud: CloudProcess, scheduler: Path
) -> None:
    """5 of 12 hosts are an isolated group's, on two leaves. Of the 5 that a compact one leaves 4 are together."""
    write(scheduler, SMALL)
    zone = cloud.aggregate("zone", {"availability_zone": "small"}, HOSTS[:12])
    try:
        cloud.boot(5, cloud.group("owner"), hints=ISOLATED, zone="small")
        fits = cloud.boot(2, cloud.group("fits"), hints=COMPACT, zone="small")
        assert len(leaves(SMALL, fits.values())) == 1
        with pytest.raises(Refused, match="No valid host"):
            cloud.boot(5, cloud.group("crosses"), hints=COMPACT, zone="small")
    finally:
        cloud.clear()
        cloud.drop(zone)


def test_a_server_whose_group_shares_links_already_can_move(cloud: CloudProcess, scheduler: Path) -> None:
    """Another user's servers, booted onto named hosts, came to cross a leaf of an isolated group.

    Wherever the next server of it goes, the others cross that leaf still: it is not to stay where it is for that.
    """
    write(scheduler, SMALL)
    servers = cloud.boot(5, cloud.group("owner"), hints=ISOLATED)
    inside = next(
        host
        for host in HOSTS[:12]
        if host not in servers.values()
        and len([other for other in servers.values() if SMALL[other] == SMALL[host]]) == 1
    )
    other = cloud.group("intruder")
    for host in (inside, HOSTS[40]):
        cloud.boot(1, other, zone=f"nova:{host}")
    moved = next(server for server, host in servers.items() if SMALL[host] != SMALL[inside])
    assert SMALL[cloud.migrate(moved)] in {SMALL[host] for host in servers.values()}


def test_isolated_groups_asked_for_at_once_cross_nothing_in_common(
    cloud: CloudProcess, scheduler: Path
) -> None:
    """Three requests reach the scheduler before any has a host. There is room for all: none is refused.

    With stock Nova, which scatters groups, or without knowledge of requests under way, two of them cross something in
    common; without knowledge of what is planned, one is refused.
    """
    for attempt in range(3):
        names = [f"{name}{attempt}" for name in ("one", "two", "three")]
        asked = [(cloud.ask(5, cloud.group(name), hints=ISOLATED), 5) for name in names]
        groups = [crossed(TREE, list(cloud.placed(request, count).values())) for request, count in asked]
        cloud.clear()
        for one, other in itertools.combinations(groups, 2):
            assert not one & other


UNPROMISED = (
    r"No valid host.*Isolation of this server group cannot be promised now \({}\)\. Request it again later"
)


def test_while_claims_are_unknown_no_isolated_group_is_placed_and_its_user_sees_why(
    cloud: CloudProcess, scheduler: Path
) -> None:
    """A compact group is placed meanwhile. Once the claims can be read again, isolated groups are placed."""
    others = "it is not known what other schedulers place now"
    before = cloud.refusals().get("unanswered", 0)
    cloud.spoil_claims()
    try:
        with pytest.raises(Refused, match=UNPROMISED.format(others)):
            cloud.boot(3, cloud.group("promised"), hints=ISOLATED)
        assert cloud.log(f"asks for isolation, which cannot be decided, and is placed nowhere: {others}: ")
        assert len(set(cloud.boot(3, cloud.group("compact"), hints=COMPACT).values())) == 3
    finally:
        cloud.mend_claims()
    assert len(set(cloud.boot(3, cloud.group("later"), hints=ISOLATED).values())) == 3
    assert cloud.refusals()["unanswered"] == before + 1


def test_after_an_error_no_isolated_group_is_placed_and_others_are_novas(
    cloud: CloudProcess, scheduler: Path
) -> None:
    """The log has the error. Without it, isolated groups are placed again."""
    cloud.break_requests()
    try:
        with pytest.raises(Refused, match=UNPROMISED.format("an error in Topolane")):
            cloud.boot(2, cloud.group("promised"), hints=ISOLATED)
        assert cloud.log("broken by the test")
        assert cloud.boot(2, cloud.group("compact"), hints=COMPACT)
    finally:
        cloud.mend_requests()
    assert len(set(cloud.boot(2, cloud.group("later"), hints=ISOLATED).values())) == 2


@pytest.mark.parametrize("after", [1, 2])
def test_an_error_after_the_first_server_refuses_the_whole_isolated_group(
    cloud: CloudProcess, scheduler: Path, after: int
) -> None:
    """The error comes while the first server is weighed, or while the second is filtered. Nova gives back what it holds for
    the first: a group that needs every host of the machine is placed afterwards."""
    write(scheduler, SMALL)
    zone = cloud.aggregate("zone", {"availability_zone": "small"}, HOSTS[:12])
    try:
        cloud.break_requests(after)
        try:
            with pytest.raises(Refused, match="No valid host"):
                cloud.boot(3, cloud.group("promised"), hints=ISOLATED, zone="small")
        finally:
            cloud.mend_requests()
        assert len(set(cloud.boot(12, cloud.group("all"), hints=ISOLATED, zone="small").values())) == 12
    finally:
        cloud.clear()
        cloud.drop(zone)


def test_without_a_network_an_isolated_group_waits_unless_only_the_operator_asks_for_it(
    cloud: CloudProcess, tmp_path: Path
) -> None:
    """The operator's default is refused too, unless `unanswered` says `stock`. What a group asks for itself is not the
    operator's to give up."""
    nowhere = {"machine_file": str(tmp_path / "missing"), "default_placement": "isolated"}
    why = UNPROMISED.format("the network is not described")
    for unanswered, hints, placed in (
        ("refuse", ISOLATED, False),
        ("refuse", {}, False),
        ("refuse", COMPACT, True),
        ("stock", ISOLATED, False),
        ("stock", {}, True),
    ):
        cloud.schedule_by(ours(**nowhere, unanswered=unanswered))
        if placed:
            assert cloud.boot(2, cloud.group("stock"), hints=hints)
        else:
            with pytest.raises(Refused, match=why):
                cloud.boot(2, cloud.group("waits"), hints=hints)
