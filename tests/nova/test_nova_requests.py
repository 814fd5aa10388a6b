"""Requests that cannot be met or understood, and settings that undo the placement."""

from __future__ import annotations

from pathlib import Path

import pytest
from cloud_process import HOSTS, CloudProcess, Refused
from placements import COMPACT, ISOLATED, leaves, ours, tree, write

TREE = tree([HOSTS[start : start + 4] for start in range(0, 72, 4)], leaves_in_pod=3)


@pytest.fixture(autouse=True)
def scheduler(cloud: CloudProcess, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.getbasetemp() / "leaves-of-4.conf"
    write(file, TREE)
    cloud.schedule_by(ours(machine_file=str(file)))
    return file


def test_a_group_larger_than_what_there_is_is_refused_and_the_scheduler_goes_on(cloud: CloudProcess) -> None:
    """4 VMs in a zone of 3 hosts: a request of 73 would only take longer."""
    zone = cloud.aggregate("zone", {"availability_zone": "small"}, HOSTS[:3])
    try:
        with pytest.raises(Refused, match="No valid host"):
            cloud.boot(4, cloud.group("huge"), hints=COMPACT, zone="small")
        three = cloud.boot(3, cloud.group("fits"), hints=COMPACT, zone="small")
        assert set(three.values()) == set(HOSTS[:3])
        cloud.delete(list(three))
    finally:
        cloud.drop(zone)
    assert len(leaves(TREE, cloud.boot(2, cloud.group("pair"), hints=COMPACT).values())) == 1


@pytest.mark.parametrize(
    ("hints", "said"),
    [
        ({"topolane:placement": "tight"}, "'tight' is none of compact, isolated, spread, none"),
        ({"topolane:placement": ["compact", "spread"]}, "topolane:placement="),
        ({"topolane:traffic": "../../etc/passwd"}, "'../../etc/passwd' is not the name of a profile"),
        ({"topolane:size": "many"}, "'many' is not a number from 1 to 1000"),
        ({"topolane:placment": "compact"}, "'topolane:placment' is none of topolane:placement"),
    ],
)
def test_a_hint_that_is_not_understood_places_nothing_and_is_named(
    cloud: CloudProcess, hints: dict[str, object], said: str
) -> None:
    before = len(cloud.log(said))
    with pytest.raises(Refused, match="No valid host"):
        cloud.boot(1, cloud.group("odd"), hints=hints)
    assert len(cloud.log(said)) > before


@pytest.mark.parametrize("specs", [{"topolane:placement": "tight"}, {"topolane:traffic": "a/b"}])
def test_the_api_refuses_extra_specs_that_are_not_understood(
    cloud: CloudProcess, specs: dict[str, str]
) -> None:
    """From microversion 2.86 on."""
    with pytest.raises(Refused, match="400"):
        cloud.flavor(f"refused-{next(iter(specs.values()))[0]}", 8192, specs)


def test_extra_specs_that_no_api_has_checked_are_named_in_the_log(cloud: CloudProcess) -> None:
    """The hint goes before the flavor; a group without a hint gets what its flavor says."""
    cloud.flavor("old", 8192, {"topolane:placement": "tight"}, microversion="2.85")
    with pytest.raises(Refused, match="No valid host"):
        cloud.boot(1, cloud.group("old"), "old")
    assert cloud.log("'tight' is none of compact, isolated, spread, none")
    assert len(cloud.boot(1, cloud.group("hinted"), "old", hints=COMPACT)) == 1


def test_a_flavor_may_ask_for_a_placement(cloud: CloudProcess) -> None:
    cloud.flavor("compact", 8192, COMPACT)
    assert len(leaves(TREE, cloud.boot(3, cloud.group("flavored"), "compact").values())) == 1


def test_settings_that_scatter_groups_are_warned_of_at_start(cloud: CloudProcess) -> None:
    cloud.schedule_by(ours({"host_subset_size": 3, "shuffle_best_same_weighed_hosts": True}))
    assert cloud.log("host_subset_size = 3 draws among the best hosts at random")
    assert cloud.log("shuffle_best_same_weighed_hosts mixes hosts")


def test_a_missing_weigher_is_warned_of_at_start(cloud: CloudProcess) -> None:
    """Ours, or Nova's own where the list names only ours."""
    cloud.schedule_by(ours({"weight_classes": ["topolane.nova.weigher.TopolaneWeigher"]}))
    assert cloud.log("Nova's own weighers are off")
    cloud.schedule_by(ours({"weight_classes": ["nova.scheduler.weights.all_weighers"]}))
    assert cloud.log("TopolaneWeigher is not in [filter_scheduler] weight_classes")


def test_servers_of_one_request_are_a_group_without_a_server_group(cloud: CloudProcess) -> None:
    """If they ask for a placement. Without, Nova scatters them over the leaves."""
    cloud.flavor("packed", 8192, COMPACT)
    assert len(leaves(TREE, cloud.boot(4, None, "packed").values())) == 1
    assert len(leaves(TREE, cloud.boot(4, hints=COMPACT).values())) == 1
    assert len(leaves(TREE, cloud.boot(4).values())) > 1


def test_a_server_alone_that_asks_for_a_placement_is_left_to_nova_and_the_log_says_so(
    cloud: CloudProcess,
) -> None:
    """So is one of several that moves: the others of its request are nothing to it any more."""
    before = len(cloud.log("without a server group: Nova places it alone"))
    assert len(cloud.boot(1, hints=COMPACT)) == 1
    alone = len(cloud.log("without a server group: Nova places it alone"))
    assert alone > before
    moved = next(iter(cloud.boot(2, hints=COMPACT)))
    assert len(cloud.log("without a server group: Nova places it alone")) == alone
    cloud.migrate(moved)
    assert len(cloud.log("without a server group: Nova places it alone")) > alone


def test_isolated_servers_without_a_server_group_are_refused_with_the_reason(cloud: CloudProcess) -> None:
    """Without a group it would not be known later whose links they are. One server has no link to keep."""
    before = len(cloud.log("isolated servers need a server group"))
    with pytest.raises(Refused, match="No valid host"):
        cloud.boot(2, hints=ISOLATED)
    assert len(cloud.log("isolated servers need a server group")) > before
    assert len(cloud.boot(1, hints=ISOLATED)) == 1
