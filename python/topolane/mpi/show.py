"""What a matrix says: a summary, and a picture."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from topolane import files
from topolane._engine import InputError
from topolane.mpi.matrix import FIGURES, KINDS, Recorded

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORDS = {
    "point_to_point": "point-to-point, counted",
    "modelled": "collectives, modelled",
    "two_level": "collectives, counted",
    "one_sided": "one-sided, counted",
}
MOST_CELLS = 256
"""Of a side of the picture: beyond it neighbouring ranks share a cell."""


def summary(recorded: Recorded, pairs: int = 5) -> dict[str, Any]:
    """Figures of a run: in all, by kind, across the halves of its ranks, by pair and by call."""
    about = recorded.about
    seconds = max(about.seconds, default=0.0)
    spent = sum(about.seconds) or 1.0
    apart = (recorded.sender < about.ranks // 2) != (recorded.receiver < about.ranks // 2)
    size = recorded.total("bytes")
    heaviest = np.argsort(-size, kind="stable")[:pairs]
    totals = {name: recorded.total(name) for name in FIGURES}
    return {
        "program": about.program,
        "name": about.name,
        "mpi": about.mpi,
        "ranks": about.ranks,
        "hosts": len({host for host in about.hosts if host}),
        "seconds": seconds,
        "in_mpi": sum(about.in_mpi) / spent,
        "skew": sum(about.skew) / spent,
        "unfinished": about.unfinished,
        "all": {name: int(total.sum()) for name, total in totals.items()},
        "kinds": {
            kind: {name: int(recorded.counts[:, at, place].sum()) for place, name in enumerate(FIGURES)}
            for at, kind in enumerate(KINDS)
        },
        "halves": {name: int(total[apart].sum()) for name, total in totals.items()},
        "halves_bytes_per_second": float(size[apart].sum()) / seconds if seconds > 0 else 0.0,
        "pairs": [
            {
                "from": int(recorded.sender[at]),
                "to": int(recorded.receiver[at]),
                **{name: int(total[at]) for name, total in totals.items()},
            }
            for at in heaviest
        ],
        "calls": [
            {"call": call, "calls": calls, "bytes": bytes_, "seconds": time}
            for call, (calls, bytes_, time) in sorted(about.calls.items(), key=lambda one: -one[1][2])
        ],
    }


def print_summary(figures: dict[str, Any]) -> None:
    """The summary as tables."""
    import click

    from topolane.cli.common import print_table
    from topolane.report.units import plural

    click.echo(
        f"{figures['name']}: {plural(figures['ranks'], 'rank')} on {plural(figures['hosts'], 'host')}, "
        f"{figures['mpi']}, {figures['seconds']:.3g} s"
    )
    click.echo(f"in MPI {figures['in_mpi']:.1%} of the time, waiting for other ranks {figures['skew']:.1%}")
    if figures["unfinished"]:
        click.echo(f"did not reach MPI_Finalize: {plural(len(figures['unfinished']), 'rank')}")
    rows = [(WORDS[kind], *_cells(one)) for kind, one in figures["kinds"].items() if any(one.values())]
    rows += [
        ("all", *_cells(figures["all"])),
        ("between the halves of the ranks", *_cells(figures["halves"])),
    ]
    print_table(("sent", "messages", "bytes", "turns"), rows)
    if figures["pairs"]:
        heaviest = [(f"{one['from']} to {one['to']}", *_cells(one)) for one in figures["pairs"]]
        print_table(("heaviest pairs", "messages", "bytes", "turns"), heaviest)
    if figures["calls"]:
        calls = [
            (one["call"], f"{one['calls']:,}", f"{one['bytes']:,}", f"{one['seconds']:.3f}")
            for one in figures["calls"]
        ]
        print_table(("call, all ranks", "calls", "bytes", "seconds"), calls)


def _cells(figures: dict[str, int]) -> tuple[str, ...]:
    return tuple(f"{figures[name]:,}" for name in ("messages", "bytes", "turns"))


def draw(recorded: Recorded, out: str) -> None:
    """Draws bytes and messages of every pair. Raises InputError for a file that is neither .svg nor .png."""
    from matplotlib.figure import Figure

    from topolane.report.style import drawing
    from topolane.report.svg import to_png, to_svg

    kind = Path(out).suffix.lower()
    if kind not in (".svg", ".png"):
        raise InputError(f"--out {out}: ends in neither .svg nor .png")
    with drawing():
        figure = Figure(figsize=(8.6, 3.9), layout="constrained")
        for axes, name in zip(figure.subplots(1, 2), ("bytes", "messages")):
            _draw_one(axes, recorded, name)
        about = recorded.about
        figure.suptitle(f"{about.name}: {about.ranks} ranks, {max(about.seconds):.3g} s", x=0.01, ha="left")
        if kind == ".svg":
            files.write(out, to_svg(figure))
            return
        figure.draw_without_rendering()
        files.write(out, to_png(figure, 160))


def _draw_one(axes: Axes, recorded: Recorded, name: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.ticker import EngFormatter, MaxNLocator

    from topolane.report.style import HEAT, IDLE

    cells, each = _cells_of(recorded, name)
    colours = LinearSegmentedColormap.from_list("heat", HEAT)
    colours.set_bad(IDLE)
    known = cells[cells > 0]
    most = float(known.max(initial=1.0))
    least = min(float(known.min(initial=most)), most / 1.001)
    image = axes.imshow(
        np.ma.masked_equal(cells, 0),
        cmap=colours,
        norm=LogNorm(least, most),
        extent=(-0.5, recorded.about.ranks - 0.5, recorded.about.ranks - 0.5, -0.5),
        interpolation="nearest",
    )
    axes.grid(False)
    axes.set(
        title=name if each == 1 else f"{name}, of {each} ranks each", xlabel="to rank", ylabel="from rank"
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))
    ticks = [least, *np.geomspace(least, most, 5)[1:-1], most] if most > 1.01 * least else [most]
    colorbar = axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03, ticks=ticks)
    colorbar.outline.set_visible(False)
    colorbar.minorticks_off()
    # In powers of ten as Matplotlib writes them there would be formulas, which no setting of ours draws.
    said = EngFormatter(unit="B" if name == "bytes" else "", places=1)
    colorbar.set_ticklabels([said(one).replace(".0 ", " ").removesuffix(".0") for one in ticks])


def _cells_of(recorded: Recorded, name: str) -> tuple[NDArray[np.float64], int]:
    """Sums of a figure in a square of cells, and how many ranks share a row of them."""
    each = max(1, math.ceil(recorded.about.ranks / MOST_CELLS))
    side = math.ceil(recorded.about.ranks / each)
    cells = np.zeros((side, side))
    np.add.at(cells, (recorded.sender // each, recorded.receiver // each), recorded.total(name))
    return cells, each
