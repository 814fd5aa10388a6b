"""What the soak of the plugin in slurmctld is judged by finds every fault, and nothing else. It shares no code with Topolane."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import pytest
from topolane import Machine

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("tests/live/slurm", "tests/slurm")]

import links_in_tree as tree
import soak_checks as checks

RULES = {
    "isolated": checks.Rule(checks.ISOLATED, True),
    "parts": checks.Rule(checks.ISOLATED, False),
    "owned": checks.Rule(checks.DEDICATED, True),
    "stock": checks.Rule(checks.OUTSIDE, True),
}
WIRING = checks.Wiring(leaf=4, pod=3, pods=2, switches=4, parents=2, cables=2)


def test_a_sweep_finds_the_pairs_that_all_comparisons_find() -> None:
    """Two jobs meet if both run at a moment and hold a thing in common, whatever their order."""
    draw = random.Random(7)
    for _ in range(200):
        jobs = []
        for number in range(30):
            start = draw.randint(0, 40)
            things = frozenset(f"t{draw.randint(0, 9)}" for _ in range(draw.randint(1, 4)))
            # Some are parts of one job, some end when another starts, some last no time.
            jobs.append(tree.Ran(number // 2, "p", things, start, start + draw.randint(0, 12)))
        expected = {
            frozenset((one, other)): one.nodes & other.nodes
            for one, other in itertools.combinations(jobs, 2)
            if one.job != other.job
            and max(one.start, other.start) < min(one.end, other.end)
            and one.nodes & other.nodes
        }
        found = tree.overlaps((job, set(job.nodes)) for job in jobs)
        assert {frozenset((one, other)): things for one, other, things in found} == expected


@pytest.mark.parametrize(
    "wiring", [WIRING, checks.Wiring(6, 3, 4, 6, 3, 1), checks.Wiring(18, 18, 4, 18, 2, 9)]
)
def test_links_have_the_numbers_that_the_engine_gives_them(wiring: checks.Wiring) -> None:
    """The wiring that the checks count by themselves is that of the engine's machine."""
    text = (
        f'name = "n"\n[node]\nsockets = 1\ncores-per-socket = 1\n[[site]]\nname = "core"\n'
        f"children = {[wiring.leaf, wiring.pod, wiring.pods]}\nparents = {[1, wiring.switches, wiring.parents]}\n"
        f'cables = {[1, 1, wiring.cables]}\nnodes = "n[1-{wiring.nodes}]"\n'
    )
    names = Machine.parse(text, "machine.toml").link_names()
    assert len(names) == wiring.links
    for link, (lower, group, upper, _, _) in enumerate(names):
        kind, number, switch = wiring.place(link)
        assert group == (f"n{number + 1}" if kind == "node" else f"{kind}{number}")
        if kind == "leaf":
            assert upper.endswith(f"-s{switch}")
        if kind == "pod":
            assert lower.endswith(f"-s{switch}")


def part(job: int, partition: str, nodes: str, cores: str = "0-3", devices: str = "") -> checks.Part:
    names = frozenset(nodes.split())
    return checks.Part(
        job, partition, True, 0, names, dict.fromkeys(names, cores), dict.fromkeys(names, devices)
    )


def test_a_node_a_core_or_a_device_twice_is_found() -> None:
    """Jobs on parts of a node may share it, but neither cores nor devices of it; a whole node is one job's."""
    fine = [
        part(1, "parts", "n1", "0-1", "gpu:2(IDX:0-1)"),
        part(2, "parts", "n1", "2,3", "gpu:1(IDX:2)"),
        part(3, "isolated", "n2"),
    ]
    assert not list(checks.twice(fine, RULES))
    for wrong, says in (
        (part(4, "parts", "n1", "3-5"), "core 3 of node n1 is held by jobs 2, 4"),
        (
            part(4, "parts", "n1", "8", "gpu:a:1(IDX:0),gpu:1(IDX:1)"),
            "device gpu 1 of node n1 is held by jobs 1, 4",
        ),
        (part(4, "parts", "n2", "8"), "node n2, whole of job 3 (isolated), has job 4 too"),
    ):
        assert list(checks.twice([*fine, wrong], RULES)) == [says]


def test_jobs_that_must_not_meet_are_found() -> None:
    """Isolated jobs meet none, dedicated ones meet each other on switches, not at nodes, and stock jobs meet stock jobs."""
    switches = {"leaf1": frozenset(("n1", "n2", "n3")), "leaf2": frozenset(("n4", "n5", "n6"))}

    def wrong(one: str, other: str, nodes: str = "n2 n5") -> int:
        jobs = [
            tree.Ran(1, one, frozenset(("n1", "n4")), 0, 10),
            tree.Ran(2, other, frozenset(nodes.split()), 5, 15),
        ]
        return len(checks.met(jobs, switches, RULES, "n")[0])

    assert wrong("isolated", "isolated") and wrong("isolated", "owned") and wrong("stock", "owned")
    assert wrong("owned", "owned", "n1 n5")
    assert not wrong("owned", "owned") and not wrong("stock", "stock")
    assert not wrong("isolated", "isolated", "n5 n6")


def text_of(*lines: str) -> str:
    body = f"topolane-links 1 {0:016x} {len(lines)}\n" + "".join(f"{line}\n" for line in lines)
    total = 14695981039346656037
    for byte in body.encode():
        total = (total ^ byte) * 1099511628211 % 2**64
    return f"{body}sum {total:016x}\n"


def test_a_file_of_links_is_read_whole_or_not_at_all() -> None:
    text = text_of("7 0.5 2 0 4 3 24 28 29", "9 1 1 8 0")
    assert checks.entries(text) == [
        checks.Entry(7, 0.5, (0, 4), (24, 28, 29)),
        checks.Entry(9, 1.0, (8,), ()),
    ]
    for other in (text.replace("24", "25"), text[:-5], text.replace(" 2\n", " 3\n"), ""):
        with pytest.raises(ValueError):
            checks.entries(other)


def test_links_of_two_jobs_and_too_few_links_are_found() -> None:
    """Job 7 has two nodes in leaf 0 and two in leaf 1: each leaf needs two uplinks, to the same switches."""

    def entry(*links: int, share: float = 1.0) -> checks.Entry:
        return checks.Entry(7, share, (0, 1, 4, 5), links)

    first, second = WIRING.nodes, WIRING.nodes + WIRING.switches
    assert not list(checks.too_few(entry(first, first + 1, second, second + 1), WIRING))
    assert not list(checks.too_few(entry(0, 1, 4, 5, first, first + 1, second, second + 1), WIRING))
    assert not list(checks.too_few(entry(first + 2, second + 2, share=0.5), WIRING))
    for wrong, says in (
        (entry(first, second, second + 1), "1 links of leaf 0"),
        (entry(first, first + 1, second, second + 2), "1 switches in common"),
        (entry(first, first + 1, second, second + 1, second + 4), "of leaf 2, which it does not cross"),
        (entry(first, first + 1, second, second + 1, 2), "of node 2, which it does not cross"),
        (entry(first, first + 1, second, second + 1, WIRING.links), "which there is not"),
    ):
        assert any(says in line for line in checks.too_few(wrong, WIRING)), says
    far = checks.Entry(8, 1.0, (0, 12), (first, first + 12))
    assert any("0 links of pod 0" in line for line in checks.too_few(far, WIRING))
    both = [entry(first, second), checks.Entry(8, 1.0, (2, 6), (first + 1, second))]
    assert list(checks.links_twice(both)) == [f"link {second} is owned by jobs 7 and 8"]
