"""The verdict of a comparison: what is a difference, what is a tie, and which trade is best."""

from __future__ import annotations

import dataclasses
import json
import random
from types import SimpleNamespace
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from topolane import noise, verdict
from topolane.report.style import PALE, hues
from topolane.units import DAY, HOUR

DAYS = 30


def jobs_of(seed: int, shift: float = 0.0, count: int = 300) -> polars.DataFrame:
    """Jobs over a month, with waits from a draw; all of them wait `shift` seconds more."""
    draw = random.Random(seed)
    times = sorted([0.0, *(draw.uniform(0, DAYS * DAY) for _ in range(count - 2)), DAYS * DAY])
    waits = [draw.expovariate(1 / HOUR) + shift for _ in times]
    return polars.DataFrame(
        {
            "job_id": range(count),
            "submission_time": times,
            "waiting_time": waits,
            "execution_time": (runs := [draw.uniform(60, 5 * HOUR) for _ in times]),
            "turnaround_time": [wait + run for wait, run in zip(waits, runs)],
            "requested_number_of_resources": [draw.randint(1, 64) for _ in times],
        }
    )


def run_of(policy: str, jobs: polars.DataFrame, **changes: Any) -> Any:
    """A run as the verdict reads it."""
    work = jobs["requested_number_of_resources"] * jobs["execution_time"]
    summary: dict[str, Any] = {
        "jobs": jobs.height,
        "mean_wait": jobs["waiting_time"].mean(),
        "mean_wait_by_work": (jobs["waiting_time"] * work).sum() / work.sum(),
        "mean_turnaround": jobs["turnaround_time"].mean(),
        "jobs_sharing_links": 200,
        "utilization_while_waiting": 0.9,
        "left_out": {},
    }
    network, scenario = changes.pop("network", None), changes.pop("scenario", "none")
    label = policy if scenario == "none" else f"{policy} {scenario} %"
    return SimpleNamespace(
        policy=policy,
        queue="easy",
        scenario=scenario,
        network=network,
        label=label,
        jobs=jobs,
        summary=summary | changes,
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32))
def test_identical_runs_tie(seed):
    """Of the same waits nothing is more than the noise, and the interval is 0 wide."""
    jobs = jobs_of(seed)
    found = verdict.of([run_of("a", jobs), run_of("b", jobs)])
    differences = found.trades[0].differences
    assert all(each.is_tie for each in differences.values())
    assert (differences["mean_wait_by_work"].low, differences["mean_wait_by_work"].high) == (0, 0)
    assert not found.trades[0].gains
    assert "as long (weighted by node-hours), a tie" in found.sentence


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([-1, 1]))
def test_a_shift_of_every_job_is_a_difference(seed, sign):
    """A policy under which every job waits longer by more than the longest wait differs, as does the reverse."""
    jobs = jobs_of(seed)
    shift = 2 * float(jobs["waiting_time"].max()) + HOUR
    pair = [run_of("a", jobs), run_of("b", jobs_of(seed, shift))]
    found = verdict.of(pair[::sign]).trades[0].differences
    for name in ("mean_wait", "mean_wait_by_work"):
        assert not found[name].is_tie
        assert found[name].low == pytest.approx(sign * shift, abs=0.01)
        assert found[name].high == pytest.approx(sign * shift, abs=0.01)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(seed, draw):
    one, other = jobs_of(seed), jobs_of(seed + 1).with_columns(jobs_of(seed)["submission_time"])
    places = list(range(one.height))
    draw.shuffle(places)
    first, second = run_of("a", one), run_of("b", other)
    mixed = SimpleNamespace(**vars(first) | {"jobs": one[places]})
    mixed_other = SimpleNamespace(**vars(second) | {"jobs": other[places[::-1]]})
    assert verdict.of([first, second]) == verdict.of([mixed, mixed_other])


def test_a_difference_within_the_noise_is_a_tie():
    """Waits from another draw of the same distribution: half of the jobs wait longer, half wait less."""
    other = jobs_of(2).with_columns(jobs_of(1)["submission_time"])
    found = verdict.of([run_of("a", jobs_of(1)), run_of("b", other)])
    wait = found.trades[0].differences["mean_wait"]
    assert wait.is_tie and wait.low < 0 < wait.high and wait.change != 0


def test_a_difference_of_less_than_the_least_is_a_tie():
    """Every job waits 90 s longer: more than the noise and a minute, but less than the bound of the replay."""
    pair = [run_of("a", jobs_of(1)), run_of("b", jobs_of(1, 90.0))]
    assert not verdict.of(pair).trades[0].differences["mean_wait"].is_tie
    assert verdict.of(pair, least=100.0).trades[0].differences["mean_wait"].is_tie
    pair[1] = run_of("b", jobs_of(1, 50.0))
    assert verdict.of(pair).trades[0].differences["mean_wait"].is_tie


def test_blocks_are_of_two_days_or_a_week_and_short_logs_have_none():
    spans = (7.9 * DAY, 8 * DAY, 69 * DAY, 70 * DAY)
    assert [noise.block_of(span) for span in spans] == [None, 2 * DAY, 2 * DAY, 7 * DAY]
    short = jobs_of(1).with_columns(polars.col("submission_time") / 10)
    found = verdict.of([run_of("a", short), run_of("b", short)])
    assert "too short" in found.rule and found.trades[0].differences["mean_wait"].low is None


def test_the_best_trade_costs_least_among_large_gains():
    """`half` has over half of the gain of `all` and costs nothing, `little` has less. With `little` and `all` alone, it is `all`."""
    base, slow = jobs_of(1), jobs_of(1, 5 * HOUR)
    first = run_of("base", base)
    every = run_of("all", slow, jobs_sharing_links=0)
    half = run_of("half", base, jobs_sharing_links=90)
    little = run_of("little", base, jobs_sharing_links=150)
    assert [trade.label for trade in verdict.of([first, every, half, little]).trades] == [
        "half",
        "all",
        "little",
    ]
    assert verdict.of([first, every, little]).trades[0].label == "all"
    none = verdict.of([first, run_of("x", slow), run_of("y", slow)])
    assert none.sentence == "base: no other policy gains anything over it."
    assert len(none.lines) == 2


def test_what_starts_fewer_jobs_or_assumes_a_speed_up_is_never_best():
    base = jobs_of(1, 5 * HOUR)
    refusing = run_of(
        "refusing", jobs_of(1), jobs_sharing_links=0, left_out={"refused by the policy: odd": 7}
    )
    faster = run_of("apart", jobs_of(1), scenario="10", jobs_sharing_links=0)
    apart = run_of("apart", jobs_of(1, 9 * HOUR), jobs_sharing_links=0)
    found = verdict.of([run_of("base", base), refusing, faster, apart])
    assert [trade.label for trade in found.trades] == ["apart", "refusing"]
    assert [trade.label for trade in found.trades[0].variants] == ["apart 10 %"]
    assert "if isolated jobs run 10 % faster, jobs wait" in found.sentence
    slower = run_of("slower", base, jobs_sharing_links=90)
    found_alone = verdict.of([run_of("base", base), faster, slower])
    assert [trade.label for trade in found_alone.trades] == ["slower", "apart 10 %"]
    assert found.lines[0].startswith("refusing: 7 jobs never start, so do not compare its waits")


def test_on_a_network_the_soonest_end_wins_and_the_run_without_it_does_not_count():
    base, soon = jobs_of(1, 5 * HOUR), jobs_of(1)
    alone = run_of("base", soon)
    with_network = run_of("base", base, network="congestion")
    late = run_of("late", base, network="congestion", jobs_sharing_links=0)
    early = run_of("early", soon, network="congestion")
    found = verdict.of([alone, with_network, late, early])
    assert [(trade.label, trade.number) for trade in found.trades] == [("early", 3), ("late", 2)]
    assert found.sentence.startswith("early, the best trade: jobs end 5.0 h sooner (wait + run)")


def test_the_reference_can_be_named():
    runs = [run_of(name, jobs_of(1)) for name in ("a", "b", "c")]
    assert verdict.of(runs).reference == "a"
    assert verdict.of(runs, ("b", "easy")).reference == "b"
    assert verdict.of(runs[:1]) is None


def test_the_verdict_begins_the_output_the_report_and_is_in_json(topolane, toy, log, tmp_path):
    """Terminal, page and JSON have the same sentence."""
    words = ("compare", "--machine", toy, "--trace", log, "--jobs", 1, "--scenarios", "none")
    rules = ("--policies", "first-fit,isolated")
    text = topolane(*words, *rules, "--out", tmp_path / "out")
    (_, other) = json.loads(topolane(*words, *rules, "--json"))
    sentence = other["verdict"]["sentence"]
    assert other["verdict"]["against"] == "first-fit"
    assert text.startswith(sentence)
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index(f"<strong>{sentence}</strong>") < page.index('id="summary"')
    assert "The same for all: " in text and "The same for all: " in page
    assert "verdict" not in json.loads(topolane(*words, "--policies", "isolated", "--json"))[0]


def test_a_variant_has_the_hue_of_its_policy():
    colours = hues(["first-fit", "isolated", "isolated", "dedicated"])
    assert colours[2] == PALE[colours[1]]
    assert len({*colours[:2], colours[3]}) == 3


def test_an_interval_is_around_the_difference():
    """Means and their interval are of the same sign and unit: low <= change <= high."""
    other = jobs_of(3, HOUR).with_columns(jobs_of(1)["submission_time"])
    found = verdict.of([run_of("a", jobs_of(1)), run_of("b", other)])
    for name in noise.MEASURES:
        each = found.trades[0].differences[name]
        assert each.low <= each.change <= each.high
    assert dataclasses.asdict(found)["block"] == 2 * DAY


@pytest.mark.parametrize(
    ("measure", "values", "texts", "folded"),
    [
        ("utilization", [0.851, 0.854], ["85.1%", "85.4%"], True),
        ("utilization", [0.851, 0.857], ["85.1%", "85.7%"], False),
        ("makespan", [1000.0, 1004.9], ["1000", "1004.9"], True),
        ("makespan", [1000.0, 1005.1], ["1000", "1005.1"], False),
        ("", [], ["0.14", "0.14"], True),
        ("", [], ["0.14", "0.15"], False),
    ],
)
def test_what_is_folded(measure, values, texts, folded):
    """What is printed the same; utilisation within half a point, makespan within half a percent."""
    assert verdict.are_alike(measure, values, texts) is folded
