"""The network study of SC'18: what is compared with what."""

import dataclasses

import pytest
import topolane
from topolane import _engine
from topolane._engine import Traffic
from topolane_studies import sc18_network as study

CAB = study.STUDIES[2]


@pytest.fixture(scope="module")
def case() -> study.StudyCase:
    return study.StudyCase(CAB, 1)


def test_the_isolated_placement_of_a_workload_slows_no_job_down(case):
    """Isolated jobs share no link, so under every routing and model each is slowed by exactly 1."""
    jobs = study.workload(case)
    cab = topolane.machine("cab")
    laid = [(nodes, Traffic.pattern(pattern, count)) for pattern, count, nodes in jobs]
    for routing in study.ROUTINGS:
        for model in study.MODELS:
            contended = _engine.contend(cab.routing(routing), model, laid)
            assert set(contended.slowdowns.tolist()) == {1.0}


def test_a_workload_fills_the_machine_with_jobs_of_the_study_s_sizes(case):
    """No node is given twice, every size is in the range, and little of the machine is left."""
    jobs = study.workload(case)
    nodes = [node for _, _, placed in jobs for node in placed]
    assert len(nodes) == len(set(nodes)) == sum(count for _, count, _ in jobs)
    assert all(CAB.smallest <= count <= CAB.largest for _, count, _ in jobs)
    assert len(nodes) > 0.9 * topolane.machine("cab").nodes


@pytest.mark.parametrize("name", study.OBLIVIOUS)
def test_an_oblivious_placement_gives_no_node_twice(case, name):
    """Jobs run together: their nodes are apart."""
    sizes = [count for _, count, _ in study.workload(case)]
    placed = study.oblivious(case, sizes)[name]
    assert [len(nodes) for nodes in placed] == sizes
    assert len({node for nodes in placed for node in nodes}) == sum(sizes)


def test_leaves_drawn_at_random_keep_their_nodes_together(case):
    """A job fills leaf after leaf of 18 nodes, so only its first and its last leaf can have other jobs."""
    sizes = [count for _, count, _ in study.workload(case)]
    for nodes in study.oblivious(case, sizes)["leaves"]:
        assert len({node // 18 for node in nodes}) <= (len(nodes) - 2) // 18 + 2


def test_a_speed_up_is_the_time_apart_over_the_time_isolated(case):
    """Recomputed from the engine for one setting, job by job; the same seed gives the same."""
    found = study.measure(case)
    assert found == study.measure(case)
    jobs = study.workload(case)
    cab = topolane.machine("cab")
    traffic = [
        Traffic.pattern("suba2a(dims=3)" if pattern == "suba2a" else pattern, count, case.seed)
        for pattern, count, _ in jobs
    ]
    ways = cab.routing("d-mod-k")
    isolated = _engine.contend(ways, "max-min", [(job[2], each) for job, each in zip(jobs, traffic)])
    apart = study.churned(case, [count for _, count, _ in jobs])
    together = _engine.contend(ways, "max-min", list(zip(apart, traffic)))
    expected = (together.times / isolated.times).tolist()
    assert found.of["churned", "d-mod-k", "max-min"] == expected


def test_a_speed_up_is_judged_by_its_gain():
    """S - 1 agrees within a quarter of the paper's, above or below: a tenth of S would accept none at all."""
    ways = {setting: [1.3, 1.2] for setting in study.settings()}
    one = study.Speedups(["pairs", "suba2a"], [4, 4], ways)
    flat = dataclasses.replace(CAB, paper={"pairs": 1.25, "suba2a": 1.35, "all": 1.21})
    found = {each.name: [one] for each in study.STUDIES}
    original, study.STUDIES = study.STUDIES, (flat,) * 3
    try:
        rows = study.rows(found)
    finally:
        study.STUDIES = original
    assert [(row.value, row.side) for row in rows[:3]] == [(True, True), (False, True), (True, True)]


def test_what_has_no_figure_is_judged_by_direction_and_rank():
    """Isolation must be faster for every pattern, the patterns stand in the paper's order, and some pairs lose."""
    ways = {setting: [1.7, 1.6, 0.9, 1.2] for setting in study.settings()}
    one = study.Speedups(list(study.PATTERNS), [4] * 4, ways)
    rows = {row.what.partition(": ")[2]: row for row in study.unvalued_rows(study.STUDIES[1], [one])}
    assert rows["order of the patterns"].side is False
    assert "4 of 6 pairs" in rows["order of the patterns"].why
    assert rows["isolation in the mean"].side is False
    assert rows["each job of pairs"].verdict == "agrees"
    assert rows["each job of pairs"].ours == "1 of 1 jobs, at worst 0.90"
    greatest = rows["greatest speed-up of a workload, stencil4d"]
    assert (greatest.paper, greatest.ours, greatest.value) == ("1.50", "1.70", False)
    assert rows["greatest speed-up of a workload, unstructured3d"].value is False


def test_every_claim_is_one_row_also_those_that_cannot_be_measured():
    """No two rows claim the same. What our notes do not explain counts as a miss."""
    ways = {setting: [1.7, 1.6, 0.9, 1.2] for setting in study.settings()}
    one = study.Speedups(list(study.PATTERNS), [4] * 4, ways)
    rows = study.rows({each.name: [one] for each in study.STUDIES})
    assert len({row.what for row in rows}) == len(rows)
    unknown = {row.paper: (row.value, row.given) for row in rows if not row.measured}
    assert unknown == {"18 minutes": (False, ""), "about 10 %": (False, "")}
