"""`topolane nova plan` goes by the rules of the filter and the weigher: traffic, CPUs and nova.conf."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("nova", reason="the extra nova-test is not installed")
from cloud_process import HOSTS, CloudProcess
from matrices import write_matrix
from placements import COMPACT, ISOLATED, leaves, ours, tree, write
from test_nova_identical import ROME, SAME
from topolane import InputError
from topolane._engine import Machine, Traffic
from topolane.nova.migration_plan import read
from topolane.nova.plan_rules import read_options
from topolane.nova.plan_traffic import PairWeights, moves

LEAVES = [HOSTS[:4], HOSTS[4:8]]
TREE = tree(LEAVES, leaves_in_pod=1)
TOY = Machine.of("toy", [(["site", f"leaf{leaf}"], hosts) for leaf, hosts in enumerate(LEAVES)])


@pytest.fixture
def nova(cloud: CloudProcess, tmp_path: Path) -> Iterator[Any]:
    """Runs a command that must end with the code; its JSON, or all it said. Two leaves of four hosts."""
    write(tmp_path / "topology.conf", TREE)

    def run(*words: str, code: int = 0) -> Any:
        ended, output, errors = cloud.command(*words, "--json", directory=str(tmp_path))
        assert ended == code, errors
        return json.loads(output) if code < 2 else errors

    yield run
    cloud.clear()
    cloud.have_cpu([HOSTS[0], *HOSTS[4:6]], None)


def configured(folder: Path, **options: object) -> str:
    """A nova.conf with options of other groups too."""
    lines = ["[DEFAULT]", "debug = true", "[scheduler]", "workers = 2", "[topolane]"]
    lines += [f"{key} = {value}" for key, value in options.items()]
    (folder / "nova.conf").write_text("\n".join(lines) + "\n")
    return str(folder / "nova.conf")


def pairs(sent: list[tuple[int, int, float]], servers: int) -> PairWeights | None:
    sender, receiver, size = np.array(sent).T
    ends = sender.astype(np.uint32), receiver.astype(np.uint32)
    return PairWeights.of([f"s{i}" for i in range(servers)], Traffic.of(servers, *ends, size))


def test_weights_are_one_on_average() -> None:
    """Three servers have three pairs. All alike: the weighted hops are those without weights. If only the first two
    talk, their pair counts three. If no server talks there are no weights."""
    at = {"s0": 0, "s1": 4, "s2": 5}
    alike = pairs([(0, 1, 5.0), (1, 2, 5.0), (2, 0, 5.0)], 3)
    assert alike is not None and alike.hops(TOY, at) == pytest.approx(TOY.quality([0, 4, 5])[1])
    first = pairs([(0, 1, 1.0), (1, 0, 2.0)], 3)
    assert first is not None and first.pairs == [(0, 1, 3.0)]
    assert first.hops(TOY, at) == pytest.approx(3 * TOY.quality([0, 4])[1])
    assert first.hops(TOY, {"s0": 0}) == 0.0
    assert pairs([(0, 0, 1.0)], 3) is None


def test_a_node_that_the_filter_refuses_is_no_target() -> None:
    """s0 talks to s1 on the other leaf. Of its free nodes 5 to 7 the filter refuses 5, and 7 costs the policy less
    than 6. If it refuses all, s1 moves instead; without a gain that is large enough, no server moves."""
    weights = pairs([(0, 1, 1.0)], 2)
    assert weights is not None

    def found(least: float = 1.0, **costs: list[float] | None) -> list[tuple[str, int]]:
        def cost(server: str, at: object, free: object) -> Any:
            own = costs[server]
            return None if own is None else np.array(own)

        steps = moves(TOY, weights, {"s0": 0, "s1": 4}, ["s0", "s1"], [0, 1, 0, 0, 0, 1, 1, 1], least, cost)
        return [(step.server, step.target) for step in steps]

    inf = float("inf")
    assert found(s0=[1] * 5 + [inf, 2, 1], s1=[1] * 8) == [("s0", 7)]
    assert found(s0=None, s1=[1] * 8) == [("s1", 1)]
    assert found(least=100.0, s0=[1] * 8, s1=[1] * 8) == []


def test_a_plan_leads_to_hosts_that_are_alike(cloud: CloudProcess, nova: Any, tmp_path: Path) -> None:
    """Two servers on two leaves; all hosts that are free have another CPU. The group that asks for identical hosts has
    no move, by its hint or by default_identical, and one that does not ask has. When a host of its kind becomes free,
    the plan leads there, and the filter lets it."""
    file = str(tmp_path / "topology.conf")
    cloud.have_cpu([HOSTS[0], *HOSTS[4:6]], ROME)
    cloud.schedule_by(ours(machine_file=file))
    full = {host: next(iter(cloud.boot(1, host=host))) for host in (HOSTS[2], HOSTS[3], HOSTS[7])}

    def scattered(hints: dict[str, str]) -> tuple[str, list[str]]:
        group = cloud.group("solver")
        return group, [next(iter(cloud.boot(1, group, hints=hints, host=HOSTS[at]))) for at in (1, 6)]

    def planned(*words: str) -> list[str]:
        return [move["target"] for move in nova("plan", "--machine", file, *words)["migrations"]]

    _, servers = scattered(COMPACT)
    (target,) = planned()
    assert target in {HOSTS[0], *HOSTS[4:6]}
    assert planned("--nova-conf", configured(tmp_path, default_identical="generation")) == []
    cloud.delete(servers)

    _, servers = scattered(COMPACT | SAME)
    assert planned() == []
    cloud.delete([full[HOSTS[7]]])
    assert nova("plan", "--machine", file, "--out", "plan.json")["migrations"][0]["target"] == HOSTS[7]
    nova("apply", "plan.json", "--machine", file)
    assert set(cloud.hosts(servers).values()) == {HOSTS[6], HOSTS[7]}


@pytest.mark.parametrize("hints", [COMPACT, ISOLATED])
def test_a_plan_brings_together_what_talks(
    cloud: CloudProcess, nova: Any, tmp_path: Path, hints: dict[str, str]
) -> None:
    """ant and cat are on the first leaf, bee and dog on the second, and each leaf has a free host. ant talks to bee
    and cat to dog, as was measured: they share a leaf after the plan, which saves all hops of the bytes. Without
    nova.conf the plan knows nothing of that. `apply` makes the moves though the plain sum of hops does not fall."""
    file = str(tmp_path / "topology.conf")
    folder = tmp_path / "measured"
    folder.mkdir()
    write_matrix(folder / "m.csv", ["ant", "bee", "cat", "dog"], sent=[(0, 1, 2 << 20), (2, 3, 1 << 20)])
    cloud.schedule_by(ours(machine_file=file))
    full = [next(iter(cloud.boot(1, host=HOSTS[at]))) for at in (3, 7)]
    assert full
    group = cloud.group("solver")
    placed = {"ant": 0, "bee": 4, "cat": 1, "dog": 5}
    servers = {
        name: next(iter(cloud.boot(1, group, hints=hints, host=HOSTS[at], name=name)))
        for name, at in placed.items()
    }
    conf = configured(tmp_path, machine_file=file, measured=folder)
    blind = nova("plan", "--machine", file)
    assert blind["weights"] == {} and len(blind["migrations"]) == 1
    plan = nova("plan", "--nova-conf", conf, "--out", "plan.json")
    moves = plan["migrations"]
    assert len(moves) == 2 and moves[-1]["after"] == 0 < moves[0]["before"]
    assert nova("plan", "--nova-conf", conf, "--least-gain", "1000")["migrations"] == []
    done = nova("apply", "plan.json", "--machine", file)
    assert done["done"]
    now = cloud.hosts(list(servers.values()))
    for pair in (("ant", "bee"), ("cat", "dog")):
        assert len(leaves(TREE, [now[servers[name]] for name in pair])) == 1
    assert nova("plan", "--nova-conf", conf)["migrations"] == []


def test_groups_that_ask_for_nothing_are_planned_as_nova_conf_says(
    cloud: CloudProcess, nova: Any, tmp_path: Path
) -> None:
    """With default_placement = compact they are looked at; without nova.conf they are not."""
    file = str(tmp_path / "topology.conf")
    group = cloud.group("solver")
    for at in (0, 4):
        cloud.boot(1, group, host=HOSTS[at])
    assert nova("plan", "--machine", file)["migrations"] == []
    conf = configured(tmp_path, machine_file=file, default_placement="compact")
    assert len(nova("plan", "--nova-conf", conf)["migrations"]) == 1


def test_a_profile_that_is_not_used_is_named(cloud: CloudProcess, nova: Any, tmp_path: Path) -> None:
    """A group that names a profile: without nova.conf, and with one whose folder lacks it."""
    file = str(tmp_path / "topology.conf")
    group = cloud.group("solver")
    for at in (0, 4):
        cloud.boot(1, group, hints=COMPACT | {"topolane:traffic": "ring"}, host=HOSTS[at])
    said = cloud.command("plan", "--machine", file, directory=str(tmp_path))[2]
    assert "group solver is planned as if all its servers talked alike: where its traffic" in said
    conf = configured(tmp_path, machine_file=file, traffic_directory=tmp_path)
    said = cloud.command("plan", "--nova-conf", conf, directory=str(tmp_path))[2]
    assert f"there is no traffic profile ring in {tmp_path}" in said


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "nova.conf: No such file or directory"),
        ("[topolane]\ndefault_identical = some", "nova.conf: "),
        ("[topolane]\nmeasured_days = many", "nova.conf: "),
        ("compact", "nova.conf: "),
    ],
)
def test_a_nova_conf_that_cannot_be_read_is_one_sentence(
    tmp_path: Path, text: str | None, sentence: str
) -> None:
    file = tmp_path / "nova.conf"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_options(str(file))
    assert sentence in str(refused.value) and "\n" not in str(refused.value)


def test_weights_in_a_damaged_plan_are_refused(tmp_path: Path) -> None:
    """A pair of servers that the group does not have, and a weight that is none."""
    for pair in ([0, 2, 1.0], [1, 0, 1.0], [0, 1, -1.0], [0, 1, None], [0, 1]):
        weights = {"g": {"servers": ["a", "b"], "pairs": [pair]}}
        content = {"version": 1, "migrations": [], "start": {}, "weights": weights}
        (tmp_path / "plan.json").write_text(json.dumps(content))
        with pytest.raises(InputError, match="plan.json: start or weights: "):
            read(tmp_path / "plan.json")
