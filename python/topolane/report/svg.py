"""Figures as SVG: as a file of its own, and inside a page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from .axes import SIZE
from .chart import Figure
from .marks import Clip, Dot, Mark, Point, Shape, Text, corners
from .style import HEAT_THEME, INK, SURFACE, THEME

NAMES = {colour: name for colour, (name, _) in (THEME | HEAT_THEME).items()}
COLOUR = re.compile("|".join(NAMES))
OPENING = re.compile(r"<svg\b[^>]*>")
SCALE = 1.6  # pixels of the page to a point of the figure: its text is then as large as the page's
LEAST = 1.2  # on a narrow screen a figure scrolls sideways before its text gets too small
ENTITIES = {'"': "&quot;", "#": "&#35;"}
"""Written so in texts, because `inline` looks for ids and colours."""
FONTS = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""Where the font that a figure is laid out with is absent: Verdana is as wide, and most others are narrower."""


def to_svg(figure: Figure, tips: Mapping[str, str] | None = None) -> str:
    """The figure as SVG in points, with hover texts on the shapes of these gids: the same figure gives the same text."""
    width, height = _short(figure.width), _short(figure.height)
    ground = Shape(corners([(0.0, figure.width, 0.0, figure.height)]), SURFACE, closed=True)
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt" viewBox="0 0 {width} {height}">',
        f'<g style="{FONTS}" font-size="{SIZE:g}" fill="{INK}">',
        _shape(ground, {}),
    ]
    for number, mark in enumerate(figure.marks()):
        parts += _written(mark, number, tips or {})
    return "\n".join([*parts, "</g>", "</svg>", ""])


def inline(figure: Figure, svg: str, name: str, title: str, alt: str) -> str:
    """The figure's `svg` for the page: its own ids and colours that follow the theme.

    The alternative text is what a screen reader says in place of the picture.
    """
    text = svg[svg.index("<svg") :]
    for old in (' id="', "url(#"):
        text = text.replace(old, f"{old}{name}-")
    text = COLOUR.sub(lambda match: f"var(--{NAMES[match[0]]})", text)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_short(figure.width)} {_short(figure.height)}" '
        f'style="width:{figure.width * SCALE:.0f}px;min-width:{figure.width * LEAST:.0f}px" '
        f'role="img" aria-label={quoteattr(f"{title}. {alt}")}>'
    )
    return OPENING.sub(lambda _: head, text, count=1)


def _written(mark: Mark, number: int, tips: Mapping[str, str]) -> Iterator[str]:
    if isinstance(mark, Clip):
        yield f'<clipPath id="clip-{number}"><path d="{_data(corners([mark.box]), closed=True)}"/></clipPath>'
        yield f'<g clip-path="url(#clip-{number})">'
        yield from (_shape(shape, tips) for shape in mark.marks)
        yield "</g>"
    elif isinstance(mark, Dot):
        x, y, radius = (_short(value) for value in (mark.x, mark.y, mark.radius))
        yield f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{mark.fill}" stroke="{mark.stroke}"/>'
    elif isinstance(mark, Text):
        yield _text(mark)
    else:
        yield _shape(mark, tips)


def _shape(shape: Shape, tips: Mapping[str, str]) -> str:
    looks = f' fill="{shape.fill or "none"}"'
    if shape.stroke:
        looks += f' stroke="{shape.stroke}" stroke-width="{_short(shape.width)}"'
    if shape.dash:
        looks += f' stroke-dasharray="{" ".join(map(_short, shape.dash))}"'
    if shape.opacity < 1.0:
        looks += f' opacity="{_short(shape.opacity)}"'
    if shape.round_ends:
        looks += ' stroke-linecap="round"'
    path = f'<path d="{_data(shape.lines, closed=shape.closed)}"{looks}'
    if shape.gid is None:
        return f"{path}/>"
    tip = f"<title>{escape(tips[shape.gid], ENTITIES)}</title>" if shape.gid in tips else ""
    return f"<g id={quoteattr(shape.gid)}>{tip}{path}/></g>"


def _data(lines: Sequence[Sequence[Point]], *, closed: bool) -> str:
    """Path data to a hundredth of a point, each place by its distance from the one before: that is shortest."""
    parts = []
    for line in lines:
        (x, y), *others = ((round(x, 2), round(y, 2)) for x, y in line)
        parts.append(f"M{_short(x)} {_short(y)}")
        for other_x, other_y in others:
            across, down = other_x - x, other_y - y
            if other_x == x:
                parts.append(f"v{_short(down)}")
            elif other_y == y:
                parts.append(f"h{_short(across)}")
            else:
                parts.append(f"l{_short(across)} {_short(down)}")
            x, y = other_x, other_y
        if closed:
            parts.append("z")
    return "".join(parts)


def _text(text: Text) -> str:
    x, y = _short(text.x), _short(text.y)
    looks = f' transform="translate({x} {y}) rotate(-90)"' if text.upward else f' x="{x}" y="{y}"'
    if text.anchor != "start":
        looks += f' text-anchor="{text.anchor}"'
    if text.size != SIZE:
        looks += f' font-size="{text.size:g}"'
    if text.colour != INK:
        looks += f' fill="{text.colour}"'
    if text.bold:
        looks += ' font-weight="bold"'
    return f"<text{looks}>{escape(text.text, ENTITIES)}</text>"


def _short(number: float) -> str:
    return f"{round(number, 2):g}" if abs(number) < 10000 else f"{number:.0f}"
