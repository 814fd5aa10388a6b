"""The page and the files it comes with."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import types
from html.parser import HTMLParser
from importlib import import_module
from math import prod
from pathlib import Path
from pkgutil import iter_modules
from xml.etree import ElementTree

import polars
import pytest
from schedules import NUMBERS, finish, jobs_of, make_run, picture, without_jobs
from topolane.report import figures, write_report
from topolane.report.data import distinct
from topolane.report.own import BY_RUN, ONCE

NAMES = (
    "mean-wait", "wait-by-size", "wait-change", "wait-distribution", "nodes-in-use", "utilisation",
    "makespan", "aph", "job-sizes",
)  # fmt: skip
HOSTILE = "<script>alert('x')</script> & \"$\\frac{1}$\" --> {{ 7 * 7 }}"


class Reader(HTMLParser):
    """The tags of a page with their attributes, and which are left open."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]


@pytest.fixture(scope="module")
def two_runs():
    """The same jobs under two policies."""
    return [make_run("first fit"), make_run("isolating", isolating=True)]


@pytest.fixture(scope="module")
def report(two_runs, tmp_path_factory):
    """Their report."""
    return write_report(tmp_path_factory.mktemp("two"), two_runs, picture())


def check(page: Path, runs: int) -> Reader:
    """Every figure is on the page and in its files, and the page is sound."""
    text = page.read_text("utf-8")
    names = [*NAMES, *(f"fat-tree-{number}" for number in range(1, runs + 1))]
    for name in names:
        root = ElementTree.parse(page.parent / "figures" / f"{name}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert root.findall(".//{http://www.w3.org/2000/svg}path"), name
    assert {file.name for file in page.parent.iterdir()} == {"report.html", "figures"}
    reader = Reader(text)
    assert reader.open == []
    assert [a["id"] for tag, a in reader.tags if tag == "figure"] == names
    assert all(a.get("aria-label") for tag, a in reader.tags if tag == "svg")
    assert len(reader.ids()) == len(set(reader.ids()))
    return reader


def test_every_figure_is_on_the_page_and_in_its_files(report):
    check(report, 2)


def test_png_is_written_where_it_is_asked_for(two_runs, report, tmp_path):
    """PNG costs a second drawing of every figure: it is written, and linked to, only with `png`."""
    names = {file.stem for file in (report.parent / "figures").iterdir()}
    assert {file.suffix for file in (report.parent / "figures").iterdir()} == {".svg"}
    assert ".png" not in report.read_text("utf-8")
    page = write_report(tmp_path, two_runs, picture(), png=True)
    files = {f"figures/{name}.png" for name in names}
    assert all((tmp_path / file).read_bytes().startswith(b"\x89PNG") for file in files)
    assert files == {a.get("href") for _, a in Reader(page.read_text("utf-8")).tags} & files
    write_report(tmp_path, two_runs, picture())
    assert not list(tmp_path.rglob("*.png"))


def test_text_of_figures_is_text(report):
    """A reader can search and copy it; where the font is absent, another is named that is no wider."""
    for figure in re.findall(r"<svg.*?</svg>", report.read_text("utf-8"), re.DOTALL):
        fonts = re.findall(r"font-family: ([^;\"]*)", figure)
        assert fonts and set(fonts) == {"'DejaVu Sans', Verdana, sans-serif"}
    assert re.search(r"<text[^>]*>first fit</text>", report.read_text("utf-8"))


def test_nothing_is_loaded_from_outside(report):
    for tag, attributes in Reader(report.read_text("utf-8")).tags:
        for name in ("src", "href", "xlink:href", "srcset", "data"):
            target = attributes.get(name)
            if target is not None:
                assert target.startswith(("#", "data:", "figures/")), (tag, target)
    assert not re.search(r"@import|url\((?!#)", report.read_text("utf-8"))


def test_every_reference_inside_the_page_has_its_target(report):
    text = report.read_text("utf-8")
    ids = set(Reader(text).ids())
    assert set(re.findall(r'href="#([^"]+)"', text)) <= ids
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= ids


def test_colours_follow_the_theme(report):
    figures = re.findall(r"<svg.*?</svg>", report.read_text("utf-8"), re.DOTALL)
    assert not any(re.search(r"#[0-9a-f]{6}\b", figure) for figure in figures)


def test_one_run(tmp_path):
    page = write_report(tmp_path, [make_run(count=80)], picture())
    check(page, 1)
    assert "nothing to compare it with" in page.read_text("utf-8")


def test_no_jobs(tmp_path):
    check(write_report(tmp_path, [without_jobs()], picture()), 1)


def test_one_run_without_jobs_next_to_one_with_some(tmp_path):
    check(write_report(tmp_path, [make_run(count=80), without_jobs()], picture()), 2)
    check(write_report(tmp_path, [without_jobs(), make_run(count=80)], picture()), 2)


def test_jobs_that_never_waited(tmp_path):
    runs = [make_run(name, count=30, every=20000.0) for name in "ab"]
    assert all(run.summary["mean_wait"] == 0 for run in runs)
    check(write_report(tmp_path, runs, picture()), 2)


def test_jobs_of_one_node(tmp_path):
    run = make_run(count=40)
    jobs = run.jobs.filter(polars.col("requested_number_of_resources") == 1)
    check(write_report(tmp_path, [finish("single", jobs, 1296, 18, {})], picture()), 1)


@pytest.mark.parametrize("tree", [(8,), (8, 6), (4, 3, 3, 2)])
def test_trees_of_any_depth(tmp_path, tree):
    runs = [make_run(tree=tree, count=40)]
    check(write_report(tmp_path, runs, picture(tree)), 1)


def test_twenty_runs(tmp_path):
    runs = [make_run(f"run {number}", count=30, tree=(6, 4, 3), seed=number) for number in range(20)]
    page = write_report(tmp_path, runs, picture((6, 4, 3)))
    check(page, 20)
    assert page.stat().st_size < 6e6


def test_hostile_names_are_text(tmp_path):
    names = dict.fromkeys(("policy", "queue", "scenario", "workload", "machine"), HOSTILE)
    runs = [make_run(HOSTILE, count=60, **names), make_run(HOSTILE + "2", count=60, **names)]
    for run in runs:
        run.summary["left_out"] = {HOSTILE: 3}
    page = write_report(tmp_path, runs, picture())
    reader = check(page, 2)
    assert len([tag for tag, _ in reader.tags if tag == "script"]) == 1
    text = page.read_text("utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text
    assert "{{ 7 * 7 }}" in text


def test_what_a_policy_refuses_for_good_is_said_by_run(tmp_path):
    runs = [make_run(name, count=30) for name in ("one", "two")]
    runs[1].summary["left_out"] = {"refused by the policy: Never": 2}
    text = write_report(tmp_path, runs, picture()).read_text("utf-8")
    assert "Skipped in one: 3 (no end time), 1 (larger than the machine)." in text
    assert "Skipped in two: 2 (refused by the policy: Never)." in text


def test_other_networks_have_columns_of_their_own(tmp_path):
    """For each other network how many jobs share links there and, if it has servers, the bandwidth to them; else no column."""
    facts = {"storage": 0.675, "second": None}
    networks = [
        {"name": name, "servers": 1, "jobs_sharing_links": 7, "mean_bandwidth_alone": alone}
        for name, alone in facts.items()
    ]
    run = make_run(count=30)
    run.summary["networks"] = networks
    page = write_report(tmp_path, [run], picture()).read_text("utf-8")
    assert "Sharing links on storage" in page and "Sharing links on second" in page
    assert "Bandwidth on storage" in page and "67.5" in page
    assert "Bandwidth on second" not in page


def test_missing_numbers_are_dashes(tmp_path):
    run = dataclasses.replace(make_run(count=30), summary={"mean_wait": float("nan"), "left_out": None})
    check(write_report(tmp_path, [run], picture()), 1)


def test_the_same_runs_give_the_same_bytes(two_runs, report, tmp_path):
    again = write_report(tmp_path, two_runs, picture())
    assert again.read_bytes() == report.read_bytes()
    for file in sorted((report.parent / "figures").iterdir()):
        assert (tmp_path / "figures" / file.name).read_bytes() == file.read_bytes(), file.name


def test_an_error_leaves_the_old_report_alone(tmp_path, two_runs, monkeypatch):
    page = write_report(tmp_path, two_runs[:1], picture())
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    broken = two_runs[0].jobs.with_columns(allocated_resources=polars.lit("0-9999"))
    with pytest.raises(ValueError, match="9999 of 1296"):
        write_report(tmp_path, [dataclasses.replace(two_runs[0], jobs=broken)], picture())
    assert page in before
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    assert not list(tmp_path.glob(".*"))


def test_fewer_runs_leave_no_old_trees_and_other_files_stay(tmp_path, two_runs):
    write_report(tmp_path, two_runs, picture())
    (tmp_path / "jobs.csv").write_text("mine")
    (tmp_path / "figures" / "mine.svg").write_text("mine")
    write_report(tmp_path, two_runs[:1], picture())
    assert not list(tmp_path.glob("figures/fat-tree-2.*"))
    assert (tmp_path / "jobs.csv").read_text() == (tmp_path / "figures" / "mine.svg").read_text() == "mine"


def test_every_figure_is_among_the_files_that_a_later_report_replaces():
    """A module of a figure names its file; each such name is in the list, so none stays behind for good."""
    modules = (
        import_module(f"topolane.report.figures.{file.name}") for file in iter_modules(figures.__path__)
    )
    assert {module.NAME for module in modules} == {*ONCE, *BY_RUN}


def test_runs_of_the_same_label_are_distinguished(two_runs):
    one, other = two_runs
    runs = [dataclasses.replace(one, queue=queue) for queue in ("easy", "fcfs")]
    assert [run.label for run in distinct([*runs, other])] == [
        "first fit, easy",
        "first fit, fcfs",
        "isolating",
    ]


def test_anything_with_the_attributes_of_a_run_will_do(tmp_path):
    run = make_run(count=30)
    other = types.SimpleNamespace(
        **{field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    )
    check(write_report(tmp_path, [other], picture()), 1)


def test_what_is_refused(tmp_path, two_runs):
    with pytest.raises(ValueError, match="1 to 20 runs"):
        write_report(tmp_path, [], picture())
    with pytest.raises(ValueError, match="same label"):
        write_report(tmp_path, [two_runs[0], two_runs[0]], picture())
    with pytest.raises(ValueError, match="1,296 nodes, the picture of one of 64"):
        write_report(tmp_path, two_runs, picture((4, 4, 4)))
    with pytest.raises(ValueError, match="jobs lacks aph"):
        dataclasses.replace(two_runs[0], jobs=two_runs[0].jobs.drop("aph"))


def test_importing_the_report_draws_nothing():
    code = (
        "import sys, types; bare = types.ModuleType('topolane'); bare.__path__ = [sys.argv[1]]; "
        "sys.modules['topolane'] = bare; import topolane.report; "
        "sys.exit(any(name in sys.modules for name in ('matplotlib', 'jinja2', 'polars')))"
    )
    package = Path(sys.modules["topolane.report"].__file__).parents[1]
    assert subprocess.run([sys.executable, "-c", code, str(package)], check=False).returncode == 0


def test_a_hundred_thousand_jobs(tmp_path):
    """The page does not grow with the jobs. `make bench` measures how long it takes."""
    tree, rows = (22, 22, 22), []
    for number, (at, nodes, run_time) in enumerate(jobs_of(100_000, 3, every=60.0)):
        first, wait = number * 7919 % (prod(tree) - nodes), float(number * 31 % 20000)
        rows.append(
            (number, at, at + wait, at + wait + run_time, wait, run_time, run_time, nodes, 1.0,
             number % 40 / 10, 1.0, 0.0, 1, f"{first}-{first + nodes - 1}", "COMPLETED_SUCCESSFULLY")
        )  # fmt: skip
    run = finish("large", polars.DataFrame(rows, schema=NUMBERS, orient="row"), prod(tree), tree[0], {})
    page = write_report(tmp_path, [run, dataclasses.replace(run, label="again")], picture(tree))
    assert page.stat().st_size < 6e6
