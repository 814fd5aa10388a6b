"""A picture of the traffic between the ranks of a program."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topolane import files
from topolane._engine import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from topolane.mpi.matrix import Recorded

MOST_CELLS = 256
"""The most cells per side of the picture; with more ranks, neighbouring ranks share a cell."""


def draw(recorded: Recorded, out: str) -> None:
    """Draws bytes and messages of each pair. Raises InputError if the file is neither .svg nor .png."""
    from .with_matplotlib import drawing, figure, to_png, to_svg

    kind = Path(out).suffix.lower()
    if kind not in (".svg", ".png"):
        raise InputError(f"--out {out}: ends in neither .svg nor .png")
    with drawing():
        drawn = figure(8.6, 3.9)
        for axes, name in zip(drawn.subplots(1, 2), ("bytes", "messages")):
            _draw_one(axes, recorded, name)
        about = recorded.about
        drawn.suptitle(f"{about.name}: {about.ranks} ranks, {max(about.seconds):.3g} s", x=0.01, ha="left")
        if kind == ".svg":
            files.write(out, to_svg(drawn))
            return
        files.write(out, to_png(drawn, 160))


def _draw_one(axes: Axes, recorded: Recorded, name: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap, LogNorm
    from matplotlib.ticker import EngFormatter, MaxNLocator

    from .style import HEAT, IDLE

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
    # Matplotlib's own powers of ten would be formulas, which our settings do not draw.
    said = EngFormatter(unit="B" if name == "bytes" else "", places=1)
    colorbar.set_ticklabels([said(one).replace(".0 ", " ").removesuffix(".0") for one in ticks])


def _cells_of(recorded: Recorded, name: str) -> tuple[NDArray[np.float64], int]:
    """The sums of a quantity in a square of cells, and the number of ranks per cell."""
    each = max(1, math.ceil(recorded.about.ranks / MOST_CELLS))
    side = math.ceil(recorded.about.ranks / each)
    cells = np.zeros((side, side))
    np.add.at(cells, (recorded.sender // each, recorded.receiver // each), recorded.total(name))
    return cells, each
