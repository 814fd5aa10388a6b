"""Least-squares fits: bandwidths from measured times, and parameters of a node from bandwidths."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy

from topolane._engine import InputError
from topolane.calibrate import interfaces
from topolane.calibrate.interfaces import Interface
from topolane.calibrate.measurement import Measurement, MeasurementRow
from topolane.calibrate.sharing import FlowSharing, sharing

LARGE = 64
"""Bandwidth is fitted to messages of at least the largest size divided by this, which are four sizes."""


@dataclass(frozen=True)
class Fit:
    """The parameters of a machine from a measurement; None if it does not determine them."""

    rates: dict[str, dict[int, float]]
    """By pattern and number of sharers: bytes per second of each sharer."""
    latency: float | None = None
    """Seconds of an empty message between two nodes."""
    latency_inside: float | None = None
    """Seconds of an empty message inside a node."""
    memory: FlowSharing | None = None
    interface: Interface | None = None
    unknown: list[str] = field(default_factory=list)
    """Sentences on what could not be measured, and why."""


def fit(measurement: Measurement, interface: str = "best") -> Fit:
    """Fits all measurements. `interface` names a model; by default, the model with the least error is used.

    Raises InputError if there are too few message sizes to distinguish bandwidth from latency.
    """
    rates = {
        pattern: {k: bandwidth(rows) for k, rows in measurement.of(pattern).items()}
        for pattern in ("pairs", "inside", "fan-out", "fan-in")
    }
    pairs, inside = rates["pairs"], rates["inside"]
    memory = sharing(inside) if inside else None
    chosen = interfaces.choose(rates, interface) if pairs else None
    return Fit(
        rates=rates,
        latency=latency(measurement.of("pairs")),
        latency_inside=latency(measurement.of("inside")),
        memory=memory,
        interface=chosen,
        unknown=unknown(measurement, memory, chosen),
    )


def latency(by_sharers: dict[int, list[MeasurementRow]]) -> float | None:
    """Seconds one way: half the time of an empty message and its empty answer, for a single pair."""
    empty = [row for row in by_sharers.get(1, []) if row.bytes == 0]
    return empty[0].seconds / 2 if empty else None


def bandwidth(rows: list[MeasurementRow]) -> float:
    """Bytes per second r of large messages: time = a + bytes / r with the least relative squares, a >= 0."""
    largest = rows[-1].bytes
    large = [row for row in rows if row.bytes >= max(1, largest / LARGE)]
    if len(large) < 2:
        raise InputError(
            f"{rows[0].pattern} of {rows[0].sharers}: messages of {len(large)} sizes from {largest // LARGE} "
            "bytes do not tell bandwidth from latency: two are needed"
        )
    size = numpy.array([row.bytes for row in large], dtype=float)
    seconds = numpy.array([row.seconds for row in large])
    columns = numpy.stack([1 / seconds, size / seconds], axis=1)
    one = numpy.ones(len(large))
    start, slope = numpy.linalg.lstsq(columns, one)[0]
    if start < 0 or slope <= 0:
        slope = numpy.linalg.lstsq(columns[:, 1:], one)[0][0]
    return float(1 / slope)


def unknown(measurement: Measurement, memory: FlowSharing | None, interface: Interface | None) -> list[str]:
    """Sentences for the user: what is missing in the machine file, and how to measure it."""
    between = between_nodes(measurement, interface)
    return [sentence for sentence in (between, inside_node(measurement, memory)) if sentence]


def between_nodes(measurement: Measurement, interface: Interface | None) -> str:
    """What could not be measured between nodes; empty if nothing."""
    if interface is None:
        return (
            f"all processes ran on {measurement.nodes[0]}: bandwidth and latency between nodes, and the "
            "interface's penalties (they need two nodes)"
        )
    if measurement.processes == 1:
        return "with 1 process a node, how processes share the interface; its bandwidth is at least what one reached"
    if not interface.full:
        return (
            f"{measurement.processes} flows at once each had what one alone has: the interface's bandwidth is "
            "at least what they reached together"
        )
    return interface.unknown


def inside_node(measurement: Measurement, memory: FlowSharing | None) -> str:
    """What could not be measured inside a node; empty if nothing."""
    if memory is None:
        return (
            "with 1 process a node, copy and memory bandwidth and the latency inside a node (they need two)"
        )
    pairs = measurement.processes // 2
    if pairs == 1:
        return "with 1 pair in a node, memory bandwidth (it needs two pairs)"
    if memory.total is None:
        return f"{pairs} pairs at once each copied as fast as one alone: memory bandwidth is not known"
    return ""
