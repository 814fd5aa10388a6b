"""The charts: what they write, where texts go, and that they need no library that takes long to start."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest
from matplotlib import image
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from schedules import make_run, picture
from topolane.report import write_report
from topolane.report.axes import Guide
from topolane.report.chart import Figure, LegendEntry
from topolane.report.figures import job_sizes, nodes_in_use, wait_by_size, wait_cdf, wait_change
from topolane.report.lettering import width_of
from topolane.report.marks import Clip, Outline, Text
from topolane.report.png import to_png
from topolane.report.scale import AxisScale, decades, linear, round_values, times
from topolane.report.svg import to_svg

SVG = "{http://www.w3.org/2000/svg}"
RED = "#d0021b"


def written(svg: str) -> list[tuple[str | None, str, list[list[tuple[float, float]]]]]:
    """What an SVG draws: gid, colour and corners or ends. Lines that stand for boxes are boxes again."""
    found = []

    def walk(part: ElementTree.Element, looks: dict[str, str], gid: str | None) -> None:
        looks, gid = looks | part.attrib, part.get("id", gid)
        if part.tag == f"{SVG}path":
            fill, width = looks["fill"], float(looks.get("stroke-width", 0))
            lines = lines_of(part.attrib["d"])
            if gid is not None and fill == "none":
                lines = [
                    [(x - width / 2, y), (x + width / 2, y), (x + width / 2, end), (x - width / 2, end)]
                    for (x, y), (_, end) in lines
                ]
            found.append((gid, looks["stroke"] if fill == "none" else fill, lines))
        for child in part:
            walk(child, looks, gid)

    walk(ElementTree.fromstring(svg), {}, None)
    return found


def lines_of(data: str) -> list[list[tuple[float, float]]]:
    """The absolute points of path data."""
    lines: list[list[tuple[float, float]]] = []
    x = y = 0.0
    for letter, rest in re.findall(r"([MmhvlzZ])([^A-Za-z]*)", data):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", rest)]
        across = {"h": (*numbers, 0.0), "v": (0.0, *numbers), "z": (0.0, 0.0)}.get(letter, numbers)
        if letter == "z":
            x, y = lines[-1][0]
            continue
        x, y = (across[0], across[1]) if letter == "M" else (x + across[0], y + across[1])
        if letter in "Mm":
            lines.append([])
        lines[-1].append((x, y))
    return lines


@pytest.mark.parametrize("widths", [[3.0], [3.0, 3.0, 3.0], [3.0, 5.0]])
def test_what_is_written_is_what_is_drawn(widths):
    """Colours and corners of all shapes are those of the figure, to a hundredth of a point, in its order: also of boxes of one
    width, which are written as lines, of shapes behind each other, and of shapes in groups."""
    drawn = Figure(5.0, 3.0)
    (axes,) = drawn.grid(1)
    axes.shown = False
    axes.x, axes.y = AxisScale(0.0, 100.0), AxisScale(0.0, 50.0)
    for job, colour in enumerate(["#0072b2", "#0072b2", "#e69f00", "#0072b2"]):
        at = [(job + 11.3 * place, job + 0.7 * place) for place in range(len(widths))]
        axes.boxes([(x, x + width, y, y + 0.4) for (x, y), width in zip(at, widths)], colour, f"job-{job}")
    axes.strokes([[(1.0, 2.0), (30.5, 40.25)], [(0.3, 0.2), (0.1, 0.9)]], RED, 0.5)
    shapes = [mark for mark in drawn.marks() if isinstance(mark, Outline)]
    _, *found = written(to_svg(drawn))  # the first is the ground
    assert [(gid, colour) for gid, colour, _ in found] == [
        (shape.gid, shape.fill or shape.stroke) for shape in shapes
    ]
    for (*_, lines), shape in zip(found, shapes):
        assert numpy.array(lines) == pytest.approx(numpy.array(shape.lines), abs=0.011)


@pytest.mark.parametrize("text", ["isolated, easy, 10 %", "129-256", "WMwm il1|", "first-fit", "~_^{}"])
def test_widths_are_those_of_the_font(text):
    """A text is as wide as Matplotlib measures it in DejaVu Sans, to 2 %."""
    font = FontProperties(family="DejaVu Sans", size=9.0)
    width, *_ = text_to_path.get_text_width_height_descent(text, font, False)
    assert width_of(text, 9.0) == pytest.approx(width, rel=0.02)


def test_values_of_a_linear_scale_are_round():
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, never more steps than asked for, both ends included."""
    assert round_values(0.0, 100.0, 5) == [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]
    assert round_values(-1.5, 101.5, 5) == [0.0, 25.0, 50.0, 75.0, 100.0]
    assert round_values(1.0, 1.3, 4) == pytest.approx([1.0, 1.1, 1.2, 1.3])
    assert round_values(5.0, 5.0, 4) == [5.0]
    for most in range(1, 12):
        for high in (0.003, 0.7, 31.2, 1451.5, 98765.0):
            assert 1 <= len(round_values(0.0, high, most)) <= most + 1


def test_a_scale_of_decades_is_linear_up_to_a_minute():
    """30 s lie half as far along as 60 s; ten times longer is one decade further; signed scales mirror."""
    scale, _ = decades(36000.0, room=1.0, gap=0.1)
    minute = scale.share(60.0)
    assert scale.share(0.0) == 0.0 and scale.share(36000.0) == pytest.approx(1.0)
    assert scale.share(30.0) == pytest.approx(minute / 2)
    assert scale.share(6000.0) - scale.share(600.0) == pytest.approx(minute / 0.6)
    assert [text for _, text in scale.ticks] == ["0", "1 min", "10 min", "1 h"]
    signed, _ = decades(36000.0, room=1.0, gap=0.1, signed=True)
    assert signed.share(-600.0) == pytest.approx(1.0 - signed.share(600.0))
    assert times(7200.0) == (
        AxisScale(0.0, 7200.0, [(i * 1800.0, t) for i, t in enumerate(("0", "0.5", "1", "1.5", "2"))]),
        "hours",
    )


def example() -> Figure:
    """Axes from 0 to 1 with a line that leaves them."""
    drawn = Figure(3.0, 2.0)
    (axes,) = drawn.grid(1)
    axes.x, axes.y = linear(0.0, 1.0), linear(0.0, 1.0)
    axes.line([(0.5, -5.0), (0.5, 5.0)], RED, 3.0)
    axes.items.append(Guide(0.25, upright=False))
    return drawn


def test_a_line_ends_at_its_axes():
    """In SVG by a clip, which both the file and the page have under a name of its own; in PNG no pixel is beyond."""
    drawn = example()
    (clip,) = (mark for mark in drawn.marks() if isinstance(mark, Clip))
    left, right, top, bottom = clip.box
    root = ElementTree.fromstring(to_svg(drawn).encode())
    (group,) = (each for each in root.iter(f"{SVG}g") if "clip-path" in each.attrib)
    (path,) = root.iter(f"{SVG}clipPath")
    assert group.attrib["clip-path"] == f"url(#{path.attrib['id']})"
    pixels = image.imread(io.BytesIO(to_png(drawn, 72.0)), format="png")
    red = (pixels[:, :, 0] > 0.7) & (pixels[:, :, 1] < 0.3)
    rows, columns = numpy.nonzero(red)
    assert top - 1 <= rows.min() < top + 2 and bottom - 2 <= rows.max() <= bottom + 1
    assert left < columns.min() and columns.max() < right


@pytest.mark.parametrize("count", [1, 3, 9, 20])
def test_texts_stay_on_the_figure_and_apart(count):
    """Long names, many runs: every text lies on the figure, and no two texts of a figure overlap."""
    runs = [make_run(f"a run with a long name {n}", count=60, tree=(6, 4, 3), seed=n) for n in range(count)]
    for module in (wait_by_size, wait_change, wait_cdf, nodes_in_use, job_sizes):
        drawn = module.draw(runs, picture((6, 4, 3))).figure
        boxes = [box(mark) for mark in drawn.marks() if isinstance(mark, Text)]
        for left, right, top, bottom, text in boxes:
            assert left >= 0 and right <= drawn.width and top >= 0 and bottom <= drawn.height, (module, text)
        for number, one in enumerate(boxes):
            for other in boxes[:number]:
                apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]
                assert apart, (module.NAME, one, other)


def box(text: Text) -> tuple[float, float, float, float, str]:
    """Left, right, top and bottom of a text, without the room of its tallest letters."""
    width = width_of(text.text, text.size)
    before = {"start": 0.0, "middle": width / 2, "end": width}[text.anchor]
    tall = 0.7 * text.size
    if text.upward:
        return text.x - tall, text.x, text.y - width + before, text.y + before, text.text
    return text.x - before, text.x - before + width, text.y - tall, text.y, text.text


def test_a_legend_takes_as_many_columns_as_fit():
    for name, columns in (("short", 4), ("a name of thirty-eight letters, about", 2), ("x" * 200, 1)):
        drawn = Figure(6.0, 2.0)
        drawn.grid(1)
        drawn.legend([LegendEntry(name, RED) for _ in range(4)], 4, above=True)
        assert drawn.entry_columns == columns


def test_names_that_look_like_markup_of_figures_stay_as_they_are(tmp_path):
    """The page gives ids and colours other names; a run's name that looks like one is still its name."""
    name = 'q id="a" url(#b) #0072b2'
    runs = [make_run(name, count=30), make_run("other", count=30)]
    text = write_report(tmp_path, runs, picture()).read_text("utf-8")
    figure = re.search(r'<figure id="makespan">.*?(<svg.*?</svg>)', text, re.DOTALL)
    texts = {each.text for each in ElementTree.fromstring(figure[1]).iter(f"{SVG}text")}
    assert name in texts


def test_a_report_loads_matplotlib_only_for_png(tmp_path):
    """Matplotlib takes longer to start than the figures take to draw."""
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); from schedules import make_run, picture\n"
        "from topolane.report import write_report\n"
        "write_report(sys.argv[2], [make_run(count=30)], picture(), png=sys.argv[3] == 'png')\n"
        "print([name for name in ('matplotlib', 'numpy') if name in sys.modules])"
    )
    for kind, loaded in (("svg", "[]"), ("png", "['matplotlib', 'numpy']")):
        command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path / kind), kind]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == loaded
