"""Models of processes that share a network interface, and their least-squares fits.

Sources: J. Vienne, PhD thesis, Grenoble 2010, section on InfiniBand, in the form SimGrid gives it
(`network/model:IB`); J. Vienne, M. Martinasso, J.-M. Vincent, J.-F. Mehaut, "Predictive models for bandwidth
sharing in high performance clusters", IEEE Cluster 2008, for Gigabit Ethernet.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy

from topolane.calibrate.sharing import SHARED, sharing

Rates = dict[str, dict[int, float]]
"""By pattern and number of sharers: bytes per second of each sharer."""
MEASURED = ("pairs", "fan-out", "fan-in")
CLEARLY = 0.7
"""A model with penalties replaces `fair` only if its error is less than this fraction of the error of `fair`.
"""
GOOD = 0.02
"""A model with penalties replaces `fair` only if the error of `fair` is more than this."""

FEWEST = 5
"""A model with penalties replaces `fair` only with at least this many measurements: four parameters fit any
four.
"""


@dataclass(frozen=True)
class Interface:
    """A model of a shared interface with its factors."""

    model: str
    bandwidth: float
    """Bytes per second of all flows together."""
    flow: float
    """Bytes per second of one flow alone."""
    factors: dict[str, float]
    error: float
    """Root mean square of the relative errors of all measurements."""
    rates: Rates
    """The model's prediction for each measurement."""
    unknown: str = ""
    """What could not be determined; empty if nothing."""

    @property
    def full(self) -> bool:
        """Whether simultaneous flows each had less bandwidth than a single flow."""
        return any(
            rate < SHARED * self.flow for rates in self.rates.values() for k, rate in rates.items() if k > 1
        )


def choose(rates: Rates, name: str) -> Interface:
    """The model with this name; with `best`, the model with the least error, but `fair` unless it is clearly
    worse.
    """
    if name != "best":
        return MODELS[name](rates)
    even, *others = (model(rates) for model in MODELS.values())
    best = min(others, key=lambda one: one.error)
    enough = sum(len(rates[pattern]) for pattern in MEASURED) >= FEWEST
    return best if enough and even.error > GOOD and best.error < CLEARLY * even.error else even


def fair(rates: Rates) -> Interface:
    """The fair model: k flows have min(one, total / k) each, whatever their senders."""
    one, total = capacity(rates)
    return finish("fair", total, one, {}, rates, lambda pattern, k: min(one, total / k))


def capacity(rates: Rates) -> tuple[float, float]:
    """The bandwidth of one flow, and of k flows together; fitted in logarithms over all patterns."""
    fits = [sharing(rates[pattern]) for pattern in MEASURED if rates[pattern]]
    one = float(numpy.mean([numpy.log(each.one) for each in fits]))
    totals = [numpy.log(each.total) for each in fits if each.total is not None]
    return math.exp(one), math.exp(float(numpy.mean(totals))) if totals else most(rates)


def infiniband(rates: Rates) -> Interface:
    """The InfiniBand model: a flow has bandwidth / p, where p is the larger penalty of its sender and its
    receiver.

    A sender with n outgoing flows has p = n B_s, or n B_s y if more than two flows enter the receiver. A
    receiver with n incoming flows has p = n B_e (p = 1 if n = 1). Flows that together exceed the cable's
    bandwidth share it.
    """
    one, reached = alone(rates), most(rates)
    penalty = {
        pattern: {k: one / rate / k for k, rate in rates[pattern].items() if k > 1} for pattern in MEASURED
    }
    two = penalty["pairs"].get(2, 1.0)
    send = mean(list(penalty["fan-out"].values())) or two
    receive = mean(list(penalty["fan-in"].values())) or two
    crowd = mean([value for k, value in penalty["pairs"].items() if k > 2])
    crowded = max(1.0, crowd / send) if crowd and crowd > receive else 1.0

    def rate(pattern: str, k: int) -> float:
        out = k * send * (crowded if pattern == "pairs" and k > 2 else 1.0)
        cost = {"pairs": max(out, k * receive), "fan-out": k * send, "fan-in": k * receive}[pattern]
        return min(one / max(cost, 1.0) if k > 1 else one, reached / k)

    factors = {"outgoing": send, "incoming": receive, "crowded": crowded}
    return finish("infiniband", reached, one, factors, rates, rate)


def ethernet(rates: Rates) -> Interface:
    """The Ethernet model: a flow has one / (n beta) if n > 1 flows leave its sender or enter its receiver.

    The gammas apply to flows of one node whose receivers (or senders) have unequal loads. No measured pattern
    has such flows, so the published gammas are used.
    """
    one, reached = alone(rates), most(rates)
    beta = mean([one / rate / k for pattern in MEASURED for k, rate in rates[pattern].items() if k > 1])
    beta = beta or 1.0
    factors = {"beta": beta, "gamma-out": 0.115, "gamma-in": 0.036}
    said = finish("ethernet", reached, one, factors, rates, lambda _, k: one / (k * beta) if k > 1 else one)
    unknown = "the Ethernet model's gammas (no pattern gives them): they are the published ones"
    return dataclasses.replace(said, unknown=unknown)


def alone(rates: Rates) -> float:
    """Bytes per second of a single flow: the mean over the patterns."""
    return mean([rates[pattern][1] for pattern in MEASURED if 1 in rates[pattern]])


def most(rates: Rates) -> float:
    """The highest bandwidth that all flows of an interface reached together, in bytes per second."""
    return max(k * rate for pattern in MEASURED for k, rate in rates[pattern].items())


def mean(values: list[float]) -> float:
    """The geometric mean, which is the least-squares factor in logarithms; 0 without values."""
    return math.exp(float(numpy.mean(numpy.log(values)))) if values else 0.0


def finish(
    model: str,
    bandwidth: float,
    flow: float,
    factors: dict[str, float],
    rates: Rates,
    rate: Callable[[str, int], float],
) -> Interface:
    """The model's prediction for each measurement, and its error."""
    said = {pattern: {k: rate(pattern, k) for k in rates[pattern]} for pattern in MEASURED}
    errors = [
        math.log(said[pattern][k] / measured)
        for pattern in MEASURED
        for k, measured in rates[pattern].items()
    ]
    unknown = ""
    if model == "infiniband" and not rates["fan-out"]:
        unknown = (
            "between two nodes, what a sender costs apart from what a receiver costs: both have the same "
            "factor (three nodes tell)"
        )
    error = math.sqrt(float(numpy.mean(numpy.square(errors))))
    return Interface(model, bandwidth, flow, factors, error, said, unknown)


MODELS: dict[str, Callable[[Rates], Interface]] = {
    "fair": fair,
    "infiniband": infiniband,
    "ethernet": ethernet,
}
