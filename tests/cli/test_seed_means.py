"""Means over seeds: their intervals have the values that a textbook gives, and options that make no sense together are refused."""

from __future__ import annotations

import csv
import json
import math
import statistics

import pytest
from topolane.sweep.seeds import mean_of, student

TABLE = {
    1: 12.7062,
    2: 4.3027,
    3: 3.1824,
    4: 2.7764,
    5: 2.5706,
    9: 2.2622,
    10: 2.2281,
    30: 2.0423,
    120: 1.9799,
}
"""Student's t at 97.5 %, by degrees of freedom, as tables print it."""


@pytest.mark.parametrize(("freedom", "value"), TABLE.items())
def test_students_t_is_that_of_the_tables(freedom, value):
    """The quantile agrees with the printed one to its last digit."""
    assert student(freedom) == pytest.approx(value, abs=6e-5)


def test_an_interval_by_hand():
    """2, 4, 4, 6, 9: mean 5, sum of squares 28, variance 7, standard error sqrt(7 / 5); 2.7764 of it on either side."""
    found = mean_of([2.0, 4.0, 4.0, 6.0, 9.0])
    half = 2.7764451 * math.sqrt(7 / 5)
    assert (found.seeds, found.mean) == (5, 5.0)
    assert (found.low, found.high) == (pytest.approx(5 - half, rel=1e-7), pytest.approx(5 + half, rel=1e-7))


def test_intervals_are_scipys():
    """Values of any size, also large ones that lie close together, have the interval of SciPy's one-sample t test."""
    stats = pytest.importorskip("scipy.stats", reason="SciPy is not installed")
    for values in (
        [1e-3, 2e-3],
        [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0],
        [1e6 + one / 8 for one in range(32)],
        [-2.0, 7.0],
    ):
        found = mean_of(values)
        wanted = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), rel=1e-9)


def test_one_seed_has_no_interval():
    """One value has a mean only; equal values have an interval without width."""
    assert (mean_of([3.0]).low, mean_of([3.0]).half) == (None, None)
    same = mean_of([3.0, 3.0, 3.0])
    assert (same.low, same.high, same.half) == (3.0, 3.0, None)


def test_the_means_are_of_the_runs(topolane):
    """Means and paired differences of a sweep are those of its single runs in runs.csv, computed here."""
    words = (
        "compare",
        "--workload",
        "cab-aug",
        "--limit",
        200,
        "--policies",
        "first-fit,isolated",
        "--scenarios",
        "none",
    )
    summary = json.loads(topolane(*words, "--seeds", 4, "--json", "--out", "out", "--no-report", "--jobs", 1))
    rows = list(csv.DictReader((topolane.directory / "out/runs.csv").open()))
    makespans = {
        policy: [float(row["makespan"]) for row in rows if row["policy"] == policy]
        for policy in ("first-fit", "isolated")
    }
    assert [len(found) for found in makespans.values()] == [4, 4]
    differences = [two - one for one, two in zip(*makespans.values())]
    for row, values in zip(summary["rows"], makespans.values()):
        found = row["figures"]["makespan"]
        half = 3.1824463 * statistics.stdev(values) / 2
        assert found["mean"] == pytest.approx(statistics.mean(values), rel=1e-9)
        assert (found["high"] - found["low"]) / 2 == pytest.approx(half, rel=1e-6)
    found = summary["rows"][1]["difference"]["makespan"]
    half = 3.1824463 * statistics.stdev(differences) / 2
    assert found["mean"] == pytest.approx(statistics.mean(differences), rel=1e-6)
    assert (found["high"] - found["low"]) / 2 == pytest.approx(half, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--seeds", 2, "--out", "new", "--at", 3), "--at is for single runs"),
        (("--seeds", 2, "--out", "new", "--png"), "--png is for single runs"),
        (("--seeds", 2, "--out", "new", "--parquet"), "--parquet is for single runs"),
        (("--loads", "0.9", "--baseline"), "--baseline is for single runs"),
        (("--loads", "0.9", "--load", 1), "--load and --loads both name a load"),
        (("--loads", "0"), "'0' is not a load above 0"),
        (("--loads", "0.9,much"), "'much' is not a load above 0"),
        (("--loads", ""), "'' is not a load above 0"),
        (("--seeds", 0), "--seeds"),
    ],
)  # fmt: skip
def test_options_that_make_no_sense_together_are_refused(topolane, words, says):
    """One sentence names the options, the exit code is 2, and nothing is written."""
    topolane.refused("compare", "--workload", "cab-aug", "--limit", 20, "--resume", "kept", *words, says=says)
