"""Figures as PNG. Matplotlib draws them and is imported only for this."""

from __future__ import annotations

import io

from matplotlib import rc_context, rcdefaults
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Circle, PathPatch
from matplotlib.path import Path
from matplotlib.text import Text as Letters

from .chart import INCH, Figure
from .marks import Clip, Dot, Mark, Outline, Text, corners
from .style import SURFACE


def to_png(figure: Figure, dots_per_inch: float) -> bytes:
    """The figure as PNG, independent of the user's matplotlibrc."""
    with rc_context():
        rcdefaults()
        canvas = Canvas((figure.width / INCH, figure.height / INCH), dots_per_inch, facecolor=SURFACE)
        axes = canvas.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0.0, figure.width), ylim=(figure.height, 0.0))
        axes.set_axis_off()
        for order, mark in enumerate(figure.marks()):
            for artist in _artists(mark, axes):
                artist.set_zorder(order)
                axes.add_artist(artist)
        file = io.BytesIO()
        FigureCanvasAgg(canvas).print_png(file, metadata={"Software": None})
    return file.getvalue()


def _artists(mark: Mark, axes: Axes) -> list[Artist]:
    if isinstance(mark, Text):
        return [_letters(mark)]
    if isinstance(mark, Dot):
        return [Circle((mark.x, mark.y), mark.radius, facecolor=mark.fill, edgecolor=mark.stroke)]
    if isinstance(mark, Outline):
        return [_patch(mark)]
    return _clipped(mark, axes)


def _clipped(clip: Clip, axes: Axes) -> list[Artist]:
    (window,) = corners([clip.box])
    patches = [_patch(shape) for shape in clip.marks]
    for patch in patches:
        patch.set_clip_path(Path(window), axes.transData)
    return patches


def _letters(text: Text) -> Letters:
    return Letters(
        text.x,
        text.y,
        text.text,
        color=text.colour,
        fontsize=text.size,
        horizontalalignment={"start": "left", "middle": "center", "end": "right"}[text.anchor],
        fontweight="bold" if text.bold else "normal",
        rotation=90.0 if text.upward else 0.0,
        rotation_mode="anchor",
        parse_math=False,  # show a dollar sign as it is
    )


def _patch(shape: Outline) -> PathPatch:
    points, codes = [], []
    for line in shape.lines:
        points += line
        codes += [Path.MOVETO] + [Path.LINETO] * (len(line) - 1)
        if shape.closed:
            points.append(line[0])
            codes.append(Path.CLOSEPOLY)
    return PathPatch(
        Path(points, codes),
        facecolor=shape.fill or "none",
        edgecolor=shape.stroke or "none",
        linewidth=shape.width if shape.stroke else 0.0,
        linestyle=(0, tuple(shape.dash)) if shape.dash else "solid",
        alpha=shape.opacity,
        capstyle="round" if shape.round_ends else "butt",
    )
