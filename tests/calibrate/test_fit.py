"""The fit by itself: times computed from a model give back the model's parameters."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from topolane.calibrate import machine_file
from topolane.calibrate.fit import fit
from topolane.calibrate.measurement import Measurement, MeasurementRow, read
from topolane.calibrate.sharing import sharing

SIZES = (0, 1, *(4**power for power in range(1, 12)))
speeds = st.floats(1e7, 1e11)


def rows(pattern: str, rates: dict[int, float], latency: float) -> Iterator[MeasurementRow]:
    """A message of n bytes and its empty answer take 2 latency + n / rate."""
    for k, rate in rates.items():
        for size in SIZES:
            seconds = 2 * latency + size / rate
            yield MeasurementRow(pattern, k, size, seconds, seconds, seconds, 5)


@given(one=speeds, ratio=st.floats(0.2, 20), latency=st.floats(1e-7, 1e-4))
def test_two_limits_are_distinguished_where_both_are_met(one: float, ratio: float, latency: float) -> None:
    """k flows have min(one, total / k): `one` shows where total >= one, `total` where total < 8 one."""
    total = one * ratio
    rates = {k: min(one, total / k) for k in range(1, 9)}
    found = sharing(rates)
    assert found.one == pytest.approx(min(one, total), rel=1e-9)
    if ratio < 7:
        assert found.total == pytest.approx(total, rel=1e-9)
    if ratio > 8.5:
        assert found.total is None
    measured = Measurement(("a",) * 8 + ("b",) * 8, tuple(rows("pairs", rates, latency)))
    fitted = fit(measured)
    assert fitted.latency == pytest.approx(latency)
    assert fitted.rates["pairs"] == pytest.approx(rates, rel=1e-6)


@given(incoming=st.floats(1, 2), outgoing=st.floats(1, 2), crowded=st.floats(1, 2))
def test_infiniband_factors_are_recovered(incoming: float, outgoing: float, crowded: float) -> None:
    """n flows out: n outgoing (and crowded where over two enter the receiver); n in: n incoming (Vienne 2010)."""
    rates = {
        "fan-out": {k: 1e9 / (k * outgoing if k > 1 else 1) for k in range(1, 5)},
        "fan-in": {k: 1e9 / (k * incoming if k > 1 else 1) for k in range(1, 5)},
        "pairs": {
            k: 1e9 / (k * max(outgoing * (crowded if k > 2 else 1), incoming) if k > 1 else 1)
            for k in range(1, 5)
        },
    }
    all_rows = [row for pattern, by_sharers in rates.items() for row in rows(pattern, by_sharers, 1e-6)]
    hosts = tuple(f"n{node}" for node in range(5) for _ in range(4))
    found = fit(Measurement(hosts, tuple(all_rows)), "infiniband").interface
    assert found is not None
    assert found.factors["outgoing"] == pytest.approx(outgoing, rel=1e-6)
    assert found.factors["incoming"] == pytest.approx(incoming, rel=1e-6)
    if outgoing * crowded > incoming * 1.001:  # else the receiver hides it
        assert found.factors["crowded"] == pytest.approx(crowded, rel=1e-6)
    assert found.error < 1e-6


@pytest.mark.parametrize(("most", "model"), [(2, "fair"), (4, "fair"), (6, "infiniband")])
def test_a_few_measurements_are_no_reason_for_penalties(most: int, model: str) -> None:
    """Four parameters fit four bandwidths whatever they are: only more can speak for the model."""
    rates = {k: 1e9 / (1.4 * k if k > 1 else 1) for k in range(1, most + 1)}
    hosts = ("a",) * most + ("b",) * most
    found = fit(Measurement(hosts, tuple(rows("pairs", rates, 1e-6)))).interface
    assert found is not None
    assert found.model == model


def test_noise_of_a_tenth_on_every_time_leaves_bandwidths_within_a_tenth() -> None:
    """Least squares: errors of single times even out, and none makes a limit out of nothing."""
    draw = numpy.random.default_rng(1)
    exact = rows("inside", {k: min(4e9, 9e9 / k) for k in range(1, 9)}, 5e-7)
    noisy = [
        MeasurementRow(r.pattern, r.sharers, r.bytes, r.seconds * draw.uniform(0.9, 1.1), 1, 1, 5)
        for r in exact
    ]
    found = fit(Measurement(("a",) * 16, tuple(noisy))).memory
    assert found is not None
    assert found.one == pytest.approx(4e9, rel=0.1)
    assert found.total == pytest.approx(9e9, rel=0.1)


def test_comments_and_what_was_not_measured_stay_in_a_machine_file() -> None:
    text = '# ours\nname = "m"\n[node]\nmemory = 5 # small\nnic-bandwidth = 1.0\nnics = 2\n[[site]]\nname = "s"\n'
    rates = {k: min(1e9, 3e9 / k) for k in range(1, 5)}
    fitted = fit(Measurement(("a",) * 4 + ("b",) * 4, tuple(rows("pairs", rates, 1e-6))))
    merged = machine_file.merged(text, fitted)
    assert "# ours" in merged
    assert "memory = 5 # small" in merged
    node = tomllib.loads(merged)["node"]
    assert node["nic-bandwidth"] == pytest.approx(1.5e9)  # two interfaces carry 3e9
    assert node["flow-bandwidth"] == pytest.approx(1e9)
    assert "copy-bandwidth" not in node


def test_what_is_kept_is_what_was_read() -> None:
    measured = Measurement(("a", "b"), tuple(rows("pairs", {1: 1e9}, 1e-6)))
    assert read(measured.lines(), "kept") == measured
    assert json.loads(next(measured.lines()))["hosts"] == ["a", "b"]
