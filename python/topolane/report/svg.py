"""Figures as SVG: as separate files, and inside a page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from xml.sax.saxutils import escape, quoteattr

from .axes import SIZE
from .chart import Figure
from .marks import Box, Clip, Dot, Mark, Outline, Point, Text, corners
from .style import HEAT_THEME, INK, SURFACE, THEME

NAMES = {colour: name for colour, (name, _) in (THEME | HEAT_THEME).items()}
COLOUR = re.compile("|".join(NAMES))
MARK = re.compile(r'<g id="[^"]*">')
"""The ids of marks. The page does not use them, and they would be a tenth of its size."""
OPENING = re.compile(r"<svg\b[^>]*>")
SCALE = 1.6  # page pixels per figure point, so that figure text is as large as the page's text
LEAST = 1.2  # the least pixels per point: on a narrow screen a figure scrolls sideways before its text gets too small
ENTITIES = {'"': "&quot;", "#": "&#35;"}
"""These characters are escaped in texts, because `inline` searches for ids and colours."""
FONTS = "font-family: 'DejaVu Sans', Verdana, sans-serif"
"""Fallbacks if DejaVu Sans, the font of the layout, is missing: Verdana is as wide, and most others are
narrower.
"""


def to_svg(figure: Figure, tips: Mapping[str, str] | None = None) -> str:
    """The figure as SVG in points, with hover texts by gid. The same figure gives the same text."""
    width, height = _short(figure.width), _short(figure.height)
    ground = Outline(corners([(0.0, figure.width, 0.0, figure.height)]), SURFACE, closed=True)
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}pt" height="{height}pt" viewBox="0 0 {width} {height}">',
        f'<g style="{FONTS}" font-size="{SIZE:g}" fill="{INK}">',
        _shape(ground, {}, _looks(ground)),
    ]
    parts += _all(figure.marks(), tips or {})
    return "\n".join([*parts, "</g>", "</svg>", ""])


def inline(figure: Figure, svg: str, name: str, title: str, alt: str) -> str:
    """The figure's `svg` for the page: clips get unique ids, marks have none, and colours follow the theme.

    Screen readers read the alternative text instead of the picture.
    """
    text = svg[svg.index("<svg") :]
    text = MARK.sub("<g>", text)
    for old in (' id="', "url(#"):
        text = text.replace(old, f"{old}{name}-")
    text = COLOUR.sub(lambda match: f"var(--{NAMES[match[0]]})", text)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_short(figure.width)} {_short(figure.height)}" '
        f'style="width:{figure.width * SCALE:.0f}px;min-width:{figure.width * LEAST:.0f}px" '
        f'role="img" aria-label={quoteattr(f"{title}. {alt}")}>'
    )
    return OPENING.sub(lambda _: head, text, count=1)


def _all(marks: Iterable[Mark], tips: Mapping[str, str]) -> Iterator[str]:
    """The marks in order. Neighbouring marks of one look share a group, which states the look once."""
    short = (_as_lines(mark) if isinstance(mark, Outline) else mark for mark in marks)
    for looks, same in itertools.groupby(enumerate(short), lambda numbered: _looks_of_a_group(numbered[1])):
        found = list(same)
        if looks and len(found) > 1:
            yield f"<g{looks}>"
            yield from (_shape(mark, tips, "") for _, mark in found if isinstance(mark, Outline))
            yield "</g>"
        else:
            for number, mark in found:
                yield from _written(mark, number, tips)


def _as_lines(shape: Outline) -> Outline:
    """Boxes of equal width as vertical lines of that width, because their path data is half as long."""
    if shape.gid is None or not shape.closed or shape.fill is None or shape.stroke:
        return shape
    boxes = [_box(line) for line in shape.lines]
    widths = {round(box[1] - box[0], 2) for box in boxes if box}
    if None in boxes or len(widths) != 1:
        return shape
    lines = [[((box[0] + box[1]) / 2, end) for end in box[2:]] for box in boxes if box]
    return replace(shape, lines=lines, fill=None, stroke=shape.fill, width=widths.pop(), closed=False)


def _box(line: Sequence[Point]) -> Box | None:
    """The box (left, right, low, high) whose `corners` these are; None for any other line."""
    if len(line) != 4:
        return None
    (left, low), (right, _), (_, high), _ = line
    return (left, right, low, high) if list(line) == corners([(left, right, low, high)])[0] else None


def _looks_of_a_group(mark: Mark) -> str:
    """The attributes that a shape may share with a group; empty for other marks and translucent shapes,
    because a group blends as a whole.
    """
    return _looks(mark) if isinstance(mark, Outline) and mark.opacity >= 1.0 else ""


def _written(mark: Mark, number: int, tips: Mapping[str, str]) -> Iterator[str]:
    if isinstance(mark, Clip):
        yield f'<clipPath id="clip-{number}"><path d="{_data(corners([mark.box]), closed=True)}"/></clipPath>'
        yield f'<g clip-path="url(#clip-{number})">'
        yield from _all(mark.marks, tips)
        yield "</g>"
    elif isinstance(mark, Dot):
        x, y, radius = (_short(value) for value in (mark.x, mark.y, mark.radius))
        yield f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{mark.fill}" stroke="{mark.stroke}"/>'
    elif isinstance(mark, Text):
        yield _text(mark)
    else:
        yield _shape(mark, tips, _looks(mark))


def _looks(shape: Outline) -> str:
    looks = f' fill="{shape.fill or "none"}"'
    if shape.stroke:
        looks += f' stroke="{shape.stroke}" stroke-width="{_short(shape.width)}"'
    if shape.dash:
        looks += f' stroke-dasharray="{" ".join(map(_short, shape.dash))}"'
    if shape.opacity < 1.0:
        looks += f' opacity="{_short(shape.opacity)}"'
    if shape.round_ends:
        looks += ' stroke-linecap="round"'
    return looks


def _shape(shape: Outline, tips: Mapping[str, str], looks: str) -> str:
    path = f'<path d="{_data(shape.lines, closed=shape.closed)}"{looks}'
    if shape.gid is None:
        return f"{path}/>"
    tip = f"<title>{escape(tips[shape.gid], ENTITIES)}</title>" if shape.gid in tips else ""
    return f"<g id={quoteattr(shape.gid)}>{tip}{path}/></g>"


def _data(lines: Sequence[Sequence[Point]], *, closed: bool) -> str:
    """Path data rounded to a hundredth of a point, with relative coordinates, which are shortest."""
    parts = []
    end = None
    for line in lines:
        start, *others = ((round(x, 2), round(y, 2)) for x, y in line)
        parts.append(
            f"M{_pair(*start)}" if end is None else f"m{_pair(start[0] - end[0], start[1] - end[1])}"
        )
        x, y = start
        for other_x, other_y in others:
            across, down = other_x - x, other_y - y
            if other_x == x:
                parts.append(f"v{_short(down)}")
            elif other_y == y:
                parts.append(f"h{_short(across)}")
            else:
                parts.append(f"l{_pair(across, down)}")
            x, y = other_x, other_y
        end = x, y
        if closed:
            parts.append("z")
            end = start
    return "".join(parts)


def _pair(x: float, y: float) -> str:
    """Two numbers; a minus sign is enough to separate the second."""
    down = _short(y)
    return f"{_short(x)}{down}" if down.startswith("-") else f"{_short(x)} {down}"


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
    if abs(number) >= 10000:
        return f"{number:.0f}"
    text = f"{round(number, 2):g}"
    return text.replace("0.", ".", 1) if abs(number) < 1 else text
