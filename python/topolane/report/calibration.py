"""Two figures of a calibration: bandwidth of 1 to q pairs by message size, and all-to-all time by processes
of a node.
"""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from topolane.calibrate.fit import Fit
from topolane.calibrate.measurement import Measurement, MeasurementRow

from .plot import WIDTH
from .style import MUTED, SERIES
from .with_matplotlib import figure

MOST_LINES = len(SERIES)
TITLES = {"pairs": "Between two nodes", "inside": "Inside a node"}


def size(value: float, _: object = None) -> str:
    """A number of bytes in the unit that fits."""
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:g} {unit}"
        value /= 1024
    return f"{value:g} GiB"


def unit(word: str, names: tuple[str, ...], first: float) -> FuncFormatter:
    """Formats axis values with the unit that fits. The first of `names` is the unit of `first`; each next
    name is 1000 times larger.
    """

    def label(value: float, _: object = None) -> str:
        power = max(0, min(len(names) - 1, math.floor(math.log10(value / first) / 3 + 1e-9)))
        return f"{value / first / 1000**power:g} {names[power]}{word}"

    return FuncFormatter(label)


RATE = unit("/s", ("B", "kB", "MB", "GB"), 1.0)
TIME = unit("", ("ns", "µs", "ms", "s"), 1e-9)


def pairs(measurement: Measurement, fit: Fit) -> Figure:
    """Bandwidth of each pair by message size, with a line for each number of simultaneous pairs."""
    drawn = figure(WIDTH, 3.6)
    panels = [name for name in TITLES if measurement.of(name)]
    for axes, name in zip(drawn.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels):
        by_sharers = measurement.of(name)
        for index, sharers in enumerate(spread(list(by_sharers), MOST_LINES)):
            rows = [row for row in by_sharers[sharers] if row.bytes > 0]
            axes.plot(*bandwidths(rows, fit, name), color=SERIES[index], linewidth=1.4, marker="o", markersize=3,
                      label=f"{sharers} pair{'s' * (sharers > 1)}")  # fmt: skip
            axes.axhline(fit.rates[name][sharers], color=SERIES[index], linewidth=0.8, linestyle=":")
        axes.set_title(TITLES[name])
        finish(axes, "bytes of a message")
        axes.legend(ncols=2, fontsize=8)
    drawn.axes[0].yaxis.set_major_formatter(RATE)
    drawn.axes[0].set_ylabel("bandwidth of each pair")
    return drawn


def bandwidths(rows: list[MeasurementRow], fit: Fit, name: str) -> tuple[list[int], list[float]]:
    """Message sizes, and for each the bandwidth: bytes over the measured time without the latency of an empty
    message.
    """
    answer = (fit.latency if name == "pairs" else fit.latency_inside) or 0.0
    times = [max(row.seconds - answer, row.seconds / 2) for row in rows]
    return [row.bytes for row in rows], [row.bytes / time for row, time in zip(rows, times)]


def alltoall(measurement: Measurement, fit: Fit) -> Figure:
    """Seconds of MPI_Alltoall by processes of a node, with a line for each message size."""
    drawn = figure(WIDTH, 3.4)
    axes = drawn.add_subplot()
    by_sharers = measurement.of("alltoall")
    sizes = sorted({row.bytes for rows in by_sharers.values() for row in rows})
    nodes = len(measurement.nodes)
    for index, bytes_ in enumerate(sizes):
        rows = [row for rows in by_sharers.values() for row in rows if row.bytes == bytes_]
        sharers = [row.sharers for row in rows]
        axes.plot(sharers, [row.seconds for row in rows], color=SERIES[index], marker="o", markersize=4,
                  linewidth=1.4, label=f"{size(bytes_)} to each")  # fmt: skip
        axes.fill_between(sharers, [row.low for row in rows], [row.high for row in rows],
                          color=SERIES[index], alpha=0.2, linewidth=0)  # fmt: skip
        floor = [least_alltoall(fit, nodes, row) for row in rows]
        if all(floor):
            axes.plot(sharers, floor, color=MUTED, linewidth=1, linestyle="--",
                      label="least by the fitted bandwidths" if index == len(sizes) - 1 else None)  # fmt: skip
    axes.set_yscale("log")
    axes.set_xticks(spread(sorted(by_sharers), 16))
    axes.set_xlabel(f"processes on each of {nodes} node{'s' * (nodes > 1)}")
    axes.yaxis.set_major_formatter(TIME)
    axes.set_ylabel("time of MPI_Alltoall")
    axes.legend()
    return drawn


def least_alltoall(fit: Fit, nodes: int, row: MeasurementRow) -> float:
    """The least seconds of an all-to-all at the fitted bandwidths, with all messages under way at once.

    With k processes on each of N nodes, k k (N - 1) messages leave each node and k (k - 1) are copied within
    it. Penalties and latencies are not counted. Returns 0 if nothing was fitted.
    """
    k = row.sharers
    away, copies, seconds = k * k * (nodes - 1), k * (k - 1), 0.0
    if away and fit.interface is not None:
        seconds = away * row.bytes / min(away * fit.interface.flow, fit.interface.bandwidth)
    if copies and fit.memory is not None:
        together = min(copies * fit.memory.one, fit.memory.total or float("inf"))
        seconds = max(seconds, copies * row.bytes / together)
    return seconds


def finish(axes: Axes, label: str) -> None:
    axes.set_xscale("log", base=4)
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(size)
    axes.set_xlabel(label)


def spread(values: list[int], most: int) -> list[int]:
    """At most `most` of the values, evenly chosen, including the first and the last."""
    if len(values) <= most:
        return values
    return sorted({values[round(index * (len(values) - 1) / (most - 1))] for index in range(most)})
