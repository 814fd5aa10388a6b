"""What Matplotlib writes as SVG, made small, and made fit to stand inside a page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from xml.sax.saxutils import escape, quoteattr

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from .style import HEAT_THEME, THEME

PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
PATH_DATA = re.compile(r'(<path\b[^>]*?\bd=")([^"]*)(")', re.DOTALL)
NAMES = {colour: name for colour, (name, _) in (THEME | HEAT_THEME).items()}
COLOUR = re.compile("|".join(NAMES))
OPENING = re.compile(r"<svg\b[^>]*>")
VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
SCALE = 1.6  # pixels of the page to a point of the figure: its text is then as large as the page's
LEAST = 1.2  # on a narrow screen a figure scrolls sideways before its text gets too small
FONT = "font-family: 'DejaVu Sans'"
FONTS = f"{FONT}, Verdana, sans-serif"
"""Where the font that a figure was laid out with is absent: Verdana is as wide, and most others are narrower."""
BETWEEN = re.compile(r">\s+<")


def to_svg(figure: Figure) -> str:
    """The figure as SVG in points: the same figure gives the same text.

    `Figure.savefig` would draw it twice, the first time without any output.
    """
    file = io.StringIO()
    FigureCanvasSVG(figure).print_svg(
        file, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    text = METADATA.sub("", COMMENT.sub("", file.getvalue()))
    text = PATH_DATA.sub(lambda match: match[1] + "".join(_shorter(match[2])) + match[3], text)
    return BETWEEN.sub(">\n<", text.replace(FONT, FONTS))


def to_png(figure: Figure, dots_per_inch: float) -> bytes:
    """The figure as PNG, laid out as `to_svg` left it."""
    figure.set_layout_engine("none")
    figure.set_dpi(dots_per_inch)
    file = io.BytesIO()
    FigureCanvasAgg(figure).print_png(file, metadata={"Software": None})
    return file.getvalue()


def inline(svg: str, name: str, title: str, alt: str, tips: Mapping[str, str]) -> str:
    """`svg` for the page: its own ids, colours that follow the theme, a title and hover texts.

    The alternative text is what a screen reader says in place of the picture.
    """
    text = PROLOGUE.sub("", svg)
    width, height = (float(size) for size in VIEW_BOX.search(text).groups())
    for old in (' id="', '"#', "url(#"):
        text = text.replace(old, f"{old}{name}-")
    text = with_tips(text, {f"{name}-{part}": tip for part, tip in tips.items()})
    text = COLOUR.sub(lambda match: f"var(--{NAMES[match[0]]})", text)
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width:g} {height:g}" '
        f'style="width:{width * SCALE:.0f}px;min-width:{width * LEAST:.0f}px" '
        f'role="img" aria-label={quoteattr(f"{title}. {alt}")}>'
    )
    return OPENING.sub(lambda _: head, text, count=1)


def with_tips(svg: str, tips: Mapping[str, str]) -> str:
    """`svg` with hover texts on the parts drawn with these gids."""
    return re.sub(
        '<g id="([^"]*)">',
        lambda match: match[0] + (f"<title>{escape(tips[match[1]])}</title>" if match[1] in tips else ""),
        svg,
    )


def _shorter(data: str) -> Iterator[str]:
    """Path data to a hundredth of a point, level and upright lines by their one coordinate."""
    tokens = data.split()
    x = y = ""
    place = 0
    while place < len(tokens):
        command = tokens[place]
        count = {"M": 2, "L": 2, "Q": 4, "C": 6}.get(command, 0)
        numbers = [_short(token) for token in tokens[place + 1 : place + 1 + count]]
        place += 1 + count
        if command == "L" and numbers[0] == x:
            yield f"V{numbers[1]}"
        elif command == "L" and numbers[1] == y:
            yield f"H{numbers[0]}"
        else:
            yield command + " ".join(numbers)
        if count:
            x, y = numbers[-2:]


def _short(number: str) -> str:
    value = float(number)
    return f"{round(value, 2):g}" if abs(value) < 10000 else number
