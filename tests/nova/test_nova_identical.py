"""Groups that ask for hosts with the same CPU. By default every host of the cloud is an Intel Nehalem."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("nova", reason="the extra nova-test is not installed")
from cloud_process import HOSTS, CloudProcess, Refused
from placements import COMPACT, leaves, ours, tree, write
from topolane.nova.cpus import cpu_of
from topolane.nova.identical import IdenticalHosts

TREE = tree([HOSTS[:4], HOSTS[4:8]], leaves_in_pod=1)
ROME = {
    "arch": "x86_64",
    "vendor": "AMD",
    "model": "EPYC-Rome",
    "features": ["avx2"],
    "topology": {"cores": 4},
}
SAME = {"topolane:identical": "generation"}


@pytest.fixture
def mixed(cloud: CloudProcess, tmp_path: Path) -> Iterator[CloudProcess]:
    """Two leaves of four hosts. One host of the first leaf and two of the second are AMD EPYC-Rome."""
    write(tmp_path / "topology.conf", TREE)
    cloud.have_cpu([HOSTS[0], *HOSTS[4:6]], ROME)
    yield cloud
    cloud.clear()
    cloud.have_cpu([HOSTS[0], *HOSTS[4:8]], None)


def use(cloud: CloudProcess, folder: Path, **options: object) -> None:
    """Starts the scheduler with these options."""
    cloud.schedule_by(ours(machine_file=str(folder / "topology.conf"), **options))


def test_a_group_gets_hosts_of_one_generation(mixed: CloudProcess, tmp_path: Path) -> None:
    """Four servers fit on the first leaf only with both kinds. With the hint all are on Nehalem, on two leaves;
    without it they fill the leaf. Two servers get a leaf of their own kind."""
    use(mixed, tmp_path)
    group = mixed.boot(4, mixed.group("same"), hints=COMPACT | SAME)
    assert not {HOSTS[0], *HOSTS[4:6]} & set(group.values()) and set(group.values()) >= set(HOSTS[1:4])
    mixed.delete(list(group))
    assert leaves(TREE, mixed.boot(4, mixed.group("any"), hints=COMPACT).values()) == {"leaf0"}
    pair = mixed.boot(2, mixed.group("pair"), hints=SAME)
    assert set(pair.values()) in ({HOSTS[4], HOSTS[5]}, {HOSTS[6], HOSTS[7]})


def test_a_server_that_is_added_or_moves_gets_a_host_like_the_others(
    mixed: CloudProcess, tmp_path: Path
) -> None:
    """The first server runs on an AMD host of the second leaf. The others have to be AMD too, and the log says why there
    is no fourth. A live migration from one AMD host leads to the one that has become free."""
    use(mixed, tmp_path)
    group = mixed.group("same")
    mixed.boot(1, group, hints=COMPACT | SAME, host=HOSTS[4])
    second = mixed.boot(1, group, hints=COMPACT | SAME)
    third = mixed.boot(1, group, hints=COMPACT | SAME)
    assert [*second.values(), *third.values()] == [HOSTS[5], HOSTS[0]]
    with pytest.raises(Refused):
        mixed.boot(1, group, hints=COMPACT | SAME)
    assert (
        "no room on AMD EPYC-Rome (x86_64): Intel Nehalem (x86_64)"
        in mixed.log("finds no identical host")[-1]
    )
    mixed.delete(list(third))
    assert mixed.migrate(next(iter(second))) == HOSTS[0]


def test_the_operator_may_ask_for_it_for_every_group(mixed: CloudProcess, tmp_path: Path) -> None:
    """With `default_identical` groups without the hint get hosts of one kind too; `none` as a hint lifts it."""
    use(mixed, tmp_path, default_identical="generation")
    same = mixed.boot(4, mixed.group("same"), hints=COMPACT)
    assert not {HOSTS[0], *HOSTS[4:6]} & set(same.values())
    mixed.delete(list(same))
    free = mixed.boot(4, mixed.group("free"), hints=COMPACT | {"topolane:identical": "none"})
    assert leaves(TREE, free.values()) == {"leaf0"}


def test_too_few_identical_hosts_are_refused_with_their_numbers() -> None:
    """Three hosts of one kind, two of another and one that reports nothing: four servers fit on no kind. Three fit
    on the first. Where both kinds have room, the lower price decides."""
    kinds = [ROME] * 3 + [ROME | {"model": "EPYC-Milan"}] * 2 + [{}]
    hosts = [SimpleNamespace(host=str(at), cpu_info=json.dumps(kind)) for at, kind in enumerate(kinds)]
    slots = np.ones(6, dtype=np.int64)

    def first_on(awaiting: int, prices: tuple[float, float]) -> object:
        wanted = IdenticalHosts("generation", [])
        left, problem = wanted.restrict(hosts, slots, awaiting, False, lambda some: prices[int(some[3])])
        return problem or left.tolist()

    assert first_on(4, (1.0, 0.0)) == (
        "there is no room for 4 servers on identical hosts: "
        "AMD EPYC-Milan (x86_64) has room for 2, AMD EPYC-Rome (x86_64) has room for 3"
    )
    assert first_on(3, (1.0, 0.0)) == [1, 1, 1, 0, 0, 0]
    assert first_on(2, (1.0, 0.0)) == [0, 0, 0, 1, 1, 0]
    assert first_on(2, (0.0, 1.0)) == [1, 1, 1, 0, 0, 0]


def test_a_group_whose_cpus_cannot_be_read_gets_no_host() -> None:
    """If the cell of a group's hosts does not answer, any CPU could be the wrong one: nothing is chosen, and the log says why.
    One known CPU is enough."""
    hosts = [SimpleNamespace(host="0", cpu_info=json.dumps(ROME))]
    slots = np.ones(1, dtype=np.int64)
    hidden = IdenticalHosts("generation", [None, None]).restrict(hosts, slots, 1, False, lambda some: 0.0)
    assert hidden[0].tolist() == [0]
    assert hidden[1] == "the CPUs of the hosts on which the group runs are not known"
    known = IdenticalHosts("generation", [None, json.dumps(ROME)])
    assert known.restrict(hosts, slots, 1, False, lambda some: 0.0)[0].tolist() == [1]


@pytest.mark.parametrize(
    "said", ["", "not JSON", "[]", "{}", None, '{"model": 7, "features": 3}', '{"topology": []}']
)
def test_a_compute_may_report_anything(said: object) -> None:
    """What cannot be read is no known CPU, and nothing raises."""
    for alike in ("generation", "cpu"):
        cpu = cpu_of(said, alike)
        assert cpu is None or cpu.model == "7"


def test_the_same_generation_may_have_other_features(mixed: CloudProcess, tmp_path: Path) -> None:
    """All hosts of the second leaf are EPYC-Rome, two of them without avx2: one generation, but two kinds of CPU."""
    use(mixed, tmp_path)
    mixed.have_cpu(HOSTS[6:8], ROME | {"features": []})
    group = mixed.group("rome")
    first = mixed.boot(1, group, hints=SAME, host=HOSTS[4])
    rest = mixed.boot(3, group, hints=SAME)
    assert {*first.values(), *rest.values()} == set(HOSTS[4:8])
    mixed.delete([*first, *rest])
    exact = {"topolane:identical": "cpu"}
    group = mixed.group("exact")
    mixed.boot(1, group, hints=exact, host=HOSTS[4])
    assert set(mixed.boot(2, group, hints=exact).values()) == {HOSTS[0], HOSTS[5]}


def test_an_unknown_word_is_refused(mixed: CloudProcess, tmp_path: Path) -> None:
    """A hint that Nova's API does not check places no server, and the log names the value."""
    use(mixed, tmp_path)
    with pytest.raises(Refused):
        mixed.boot(1, mixed.group("typo"), hints={"topolane:identical": "cpus"})
    assert mixed.log("topolane:identical='cpus' is none of generation, cpu, none")
