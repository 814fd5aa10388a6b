"""The slowdowns of jobs by `congestion`, `max-min` and an MPI program under SMPI agree in what they must."""

import numpy as np
import pytest
from cases import ROUTINGS, Shape
from slowdowns import SC18, JobSet, job_set, model_rows, smpi, spearman
from topolane._engine import Traffic

LEAVES = Shape("two leaves", (4, 2), (1, 1), (1, 1))


def test_congestion_orders_jobs_as_max_min_does():
    """Over random sets of jobs of the four patterns, Spearman's correlation of the slowdowns is at least 0.9
    under every routing and over all."""
    rows = model_rows(sets=6)
    assert {row.routing for row in rows} == {*ROUTINGS, "all"}
    for row in rows:
        assert row.slowed > row.jobs / 4, "jobs must meet for their order to mean something"
        assert row.spearman >= 0.9, row


def exchange(a: int, b: int) -> Traffic:
    """Rank 0 sends rank 1 a mebibyte."""
    return Traffic.of(2, [a], [b], [float(1 << 20)])


def test_smpi_shares_one_cable_in_halves(compiled):
    """Two jobs of two ranks on two leaves, each sending over the only cable between them, and a third inside
    one leaf: time alone is bytes per bandwidth, the two take twice that, the third no longer than alone. So
    say both models, and the program."""
    programs = compiled("smpi_platform", "play")
    jobs = [([0, 4], exchange(0, 1)), ([1, 5], exchange(0, 1)), ([2, 3], exchange(0, 1))]
    case = JobSet(LEAVES, "d-mod-k", ["pairs"] * 3, jobs, 0)
    expected = [2.0, 2.0, 1.0]
    for model in ("congestion", "max-min"):
        assert case.slowdowns(model) == pytest.approx(expected, rel=1e-9)
    times = smpi(programs, case, iterations=5, weighted=False)
    # An iteration of the program ends with a word of 8 bytes among its ranks.
    assert times[:, 0] == pytest.approx([(1 << 20) / 4e9] * 3, rel=1e-3)
    assert times[:, 1] / times[:, 0] == pytest.approx(expected, rel=1e-3)


def test_smpi_orders_jobs_as_the_models_do(compiled):
    """Over a few sets of the four patterns, with flows weighted as in the models, both models order the jobs
    much as the program does; the figure itself is reported by `make bench BENCH=validation`."""
    programs = compiled("smpi_platform", "play")
    shape = Shape("48 nodes, tapered", (8, 6), (1, 2), (1, 1))
    cases = [job_set(shape, routing, seed, SC18) for seed, routing in enumerate(ROUTINGS)]
    times = [smpi(programs, case, iterations=2, weighted=True) for case in cases]
    theirs = np.concatenate([against_alone[:, 1] / against_alone[:, 0] for against_alone in times])
    for model in ("congestion", "max-min"):
        ours = np.concatenate([case.slowdowns(model) for case in cases])
        assert spearman(ours, theirs) > 0.6
