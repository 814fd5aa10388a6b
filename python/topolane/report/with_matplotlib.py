"""Figures drawn by Matplotlib: calibrations, traffic matrices and studies, which need its scales and images."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from .style import FAINT, INK, MUTED, SURFACE

SETTINGS = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED,
    "axes.facecolor": SURFACE,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titley": 1.0,  # nothing is above a panel, so its title can stay in place
    "figure.edgecolor": SURFACE,
    "figure.facecolor": SURFACE,
    "font.family": ["DejaVu Sans"],  # comes with Matplotlib, so letters look the same everywhere
    "font.size": 9,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "patch.edgecolor": SURFACE,
    "savefig.edgecolor": "auto",
    "savefig.facecolor": "auto",
    "svg.fonttype": "none",  # keep text as text: it can be searched and copied, and is a third as large
    "svg.hashsalt": "topolane",
    "text.color": INK,
    "text.parse_math": False,  # show a dollar sign in a workload's name as it is
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8.5,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8.5,
}


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Draw with these settings only, independent of the user's matplotlibrc."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def figure(width: float, height: float) -> Figure:
    """A blank figure, sizes in inches; Matplotlib keeps its parts from overlapping."""
    return Figure(figsize=(width, height), layout="constrained")


def to_svg(figure: Figure) -> str:
    """The figure as SVG in points. The same figure gives the same text."""
    file = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    FigureCanvasSVG(figure).print_svg(file, metadata=nothing)
    return file.getvalue()


def to_png(figure: Figure, dots_per_inch: float) -> bytes:
    """The figure as PNG."""
    figure.set_dpi(dots_per_inch)
    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file, metadata={"Software": None})
    return file.getvalue()
