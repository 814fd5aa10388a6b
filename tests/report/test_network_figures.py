"""What the report shows of runs on a network is what their tables say."""

from __future__ import annotations

import dataclasses
import re
import types

import polars
import pytest
from networks import links_of, on_network
from schedules import finish, make_run, picture, without_jobs
from topolane.report import ReportedRun, write_report
from topolane.report.contention_words import bought_back
from topolane.report.data import distinct
from topolane.report.figures import contention, contention_by_pattern, contention_by_size, link_heat
from topolane.report.heat import HeatScale, most_loaded
from topolane.report.link_cells import strips_of, with_ports
from topolane.report.style import HEAT, IDLE

TREE, PARENTS, CABLES = (4, 3, 2), (1, 2, 2), (1, 1, 2)
MISSING = ((1, 4, 0, 1, 0), (2, 1, 1, 0, 1))
SIZE = "requested_number_of_resources"


@pytest.fixture(scope="module")
def three() -> list[ReportedRun]:
    """First fit without a network and on one, and isolated on it."""
    links = links_of(TREE, PARENTS, CABLES, missing=MISSING)
    plain = make_run("first-fit", tree=TREE, count=120, every=60.0)
    apart = make_run("isolated", tree=TREE, count=120, every=60.0, isolating=True)
    turnaround = (plain.jobs["finish_time"] - plain.jobs["submission_time"]).mean()
    alone = dataclasses.replace(plain, summary={**plain.summary, "mean_turnaround": turnaround})
    return [alone, on_network(plain, links), on_network(apart, links, slowed=False)]


def drawn(links: polars.DataFrame, tree: tuple[int, ...], scale: HeatScale):
    """The boxes of the first row of the picture with their colours: (left, right, low, high, colour)."""
    run = on_network(make_run(tree=tree, count=20), links)
    plot = link_heat.draw(run, picture(tree), scale, 1)
    found = []
    for shape in plot.figure.axes[0].items:
        if (shape.gid or "").startswith("load-"):
            for (left, low), _, (right, high), _ in shape.lines:
                found.append((left, right, low, high, shape.fill))
    return found


def colour_at(boxes, x: float, y: float) -> str | None:
    """The colour at a point; None where there is no cell."""
    colours = {colour for left, right, low, high, colour in boxes if left < x < right and low < y < high}
    assert len(colours) < 2
    return colours.pop() if colours else None


def colour_of(load: float, step: float) -> str:
    """No traffic is grey; else class k holds loads above (k - 1) steps to k steps."""
    return IDLE if load == 0 else next(HEAT[k] for k in range(len(HEAT)) if load <= step * (k + 1) + 1e-12)


@pytest.mark.parametrize(
    ("tree", "parents", "cables", "missing"),
    [
        (TREE, PARENTS, CABLES, MISSING),
        ((6, 4), (1, 3), (1, 2), ((1, 2, 0, 1, 0),)),  # two levels
        ((3, 2, 2), (2, 1, 1), (1, 1, 1), ()),  # nodes with two links, one uplink everywhere
    ],
)
def test_every_link_has_its_colour_in_its_place(tree, parents, cables, missing):
    """Node links under their leaf, the first on top; uplinks by switch from the left and port from the
    bottom; the left half of a column up, the right half down; nothing where a cable is missing."""
    whole = links_of(tree, parents, cables)
    links = links_of(tree, parents, cables, missing=missing)
    links = links.join(whole.select("link", "direction"), on=["link", "direction"], how="inner")
    scale = HeatScale(0.04)
    boxes = drawn(links, tree, scale)
    layout, strips = strips_of(with_ports(links), picture(tree))
    loads = {
        (link, way): load for link, way, load in links.select("link", "direction", "mean_load").iter_rows()
    }
    for link in whole.iter_rows(named=True):
        level, group = int(link["level"]), link["group"]
        ports = parents[level] * cables[level]
        port = link["parent"] * cables[level] + link["cable"]
        half = 0.25 if link["direction"] == "up" else 0.75
        if level == 0:
            leaf, place = divmod(group, tree[0])
            x = layout.x[0][leaf] - 0.42 + 0.84 * (port + half) / ports
            y = -place - 0.5
        else:
            first, last = layout.spans[level - 1][group]
            switches = strips[level].columns
            width = min((last - first + 0.84) / switches, 3.0 if level > 1 else 9.9)
            x = (first + last - switches * width) / 2 + (link["switch"] + half) * width
            y = strips[level].low + (strips[level].high - strips[level].low) * (port + 0.5) / ports
        load = loads.get((link["link"], link["direction"]))
        expected = None if load is None else colour_of(load, scale.step)
        assert colour_at(boxes, x, y) == expected, link
    assert len(loads) == whole.height - 2 * len(missing)


def test_all_runs_have_the_same_classes_and_hold_every_load():
    weak, strong = (links_of(TREE, PARENTS, CABLES, most=most) for most in (0.02, 0.9))
    runs = [on_network(make_run(count=5, tree=TREE), links) for links in (weak, strong)]
    scale = HeatScale.of(runs)
    assert scale == HeatScale.of(runs[::-1]) != HeatScale.of(runs[:1])
    assert scale.step * len(HEAT) >= strong["mean_load"].max() > scale.step * 5
    loads = polars.DataFrame({"mean_load": [0.0, 1e-6, scale.step, scale.step + 1e-6, 8 * scale.step]})
    assert loads.select(scale.classes()).to_series().to_list() == [0, 1, 1, 2, 8]
    idle = on_network(make_run(count=5, tree=TREE), weak.with_columns(mean_load=polars.lit(0.0)))
    assert HeatScale.of([idle]).step > 0


def test_the_most_loaded_links_are_named():
    links = links_of(TREE, PARENTS, CABLES, most=0.1)
    hot = {(0, "up", 0.9): 9, (1, "down", 0.8): 24 + 2 * 3 + 1, (2, "up", 0.7): 24 + 12 + 4 + 3}
    for (_, way, load), link in hot.items():
        own = (polars.col("link") == link) & (polars.col("direction") == way)
        links = links.with_columns(mean_load=polars.when(own).then(load).otherwise(polars.col("mean_load")))
    rows = most_loaded(on_network(make_run(count=5, tree=TREE), links), picture(TREE))
    assert rows[:3] == [
        ["node 9 of leaf 2", "node to leaf", "up", "90.00 %"],
        ["leaf 3", "leaf to pod, parent 1", "down", "80.00 %"],
        ["pod 0, switch 1", "pod to core, parent 1, cable 1", "up", "70.00 %"],
    ]
    others = links["mean_load"].sort(descending=True)[3:5]
    assert [row[-1] for row in rows[3:]] == [f"{100 * load:.2f} %" for load in others]


def test_links_between_sites_are_named_too():
    links = links_of(TREE, PARENTS, CABLES, most=0.1)
    wan = links.head(1).with_columns(
        link=polars.lit(999, polars.Int64), level=polars.lit("wan"), mean_load=polars.lit(0.5),
        **{name: polars.lit(None, polars.Int64) for name in ("group", "switch", "parent", "cable")},
    )  # fmt: skip
    run = on_network(make_run(count=5, tree=TREE), polars.concat([links, wan]))
    assert most_loaded(run, picture(TREE))[0] == ["link 999", "between sites", "up", "50.00 %"]
    assert (
        "site to site 50.00 % / 50.00 %" in link_heat.draw(run, picture(TREE), HeatScale.of([run]), 1).words
    )


def texts(values: polars.Series) -> list[str]:
    """Mean, 95th percentile and worst, counted here."""
    ranked = sorted(values)
    high = ranked[int(0.95 * (len(ranked) - 1) + 1e-9)]
    return [f"{value:.3f}" for value in (sum(ranked) / len(ranked), high, ranked[-1])]


def test_the_distribution_is_of_jobs_of_several_nodes(three):
    plot = contention.draw(three, picture(TREE))
    assert [row[0] for row in plot.numbers] == ["run", "first-fit", "isolated"]
    several = three[1].jobs.filter(polars.col(SIZE) > 1)["contention"]
    share = sum(value > 1.0 for value in several) / len(several)
    assert plot.numbers[1][1:] == [f"{100 * share:.1f} %", *texts(several)]
    assert plot.numbers[2][1:] == ["0.0 %", "1.000", "1.000", "1.000"]
    first, second = plot.figure.axes[0].items
    for x, y in sorted(first.lines[0])[1:-1]:
        assert y == pytest.approx(0) or y <= 100 * sum(v <= x for v in several) / len(several) + 1e-9
    assert {x for x, _ in second.lines[0][1:-1]} == {1.0}
    assert first.stroke == "#d55e00"  # the second run's, as in the other figures


@pytest.mark.parametrize("module", [contention_by_pattern, contention_by_size])
def test_spreads_are_those_of_the_jobs(three, module):
    plot = module.draw(three, picture(TREE))
    jobs = three[1].jobs.filter(polars.col(SIZE) > 1)
    bounds = {"2–4 nodes": (2, 4), "5–24 nodes": (5, 24), "5–64 nodes": (5, 64)}
    shown = 0
    for title, cell, axes in zip(plot.numbers[0][1:], plot.numbers[1][1:], plot.figure.axes):
        if module is contention_by_pattern:
            own = jobs.filter(polars.col("pattern") == title)
        else:
            own = jobs.filter(polars.col(SIZE).is_between(*bounds[title]))
        shown += own.height
        assert cell.split(" / ") == texts(own["contention"])
        assert axes.title == title
        (bar,) = next(item for item in axes.items if item.fill).lines
        assert bar[2][0] == pytest.approx(own["contention"].mean())
    assert shown == jobs.height
    assert all(cell == "1.000 / 1.000 / 1.000" for cell in plot.numbers[2][1:])


def test_the_page_describes_the_network(three, tmp_path):
    text = write_report(tmp_path, three, picture(TREE)).read_text("utf-8")
    for word in ("No speed-up is assumed", "1 + f × f × (S − 1)", "--comm-fraction", "Not modelled"):
        assert word in text
    for heading in ("Wait + run (h)", "Slowed by others", "Worst", "Node hours lost"):
        assert f">{heading}</th>" in text
    rows = re.findall(r"<tr><th scope=\"row\".*?</tr>", text, re.DOTALL)
    suffered = three[1].summary["contention"]
    assert f"×{suffered['mean']:.3f}" in rows[1] and f"×{suffered['max']:.3f}" in rows[1]
    assert f"{suffered['node_seconds_lost'] / 3600:,.0f}</td>" in rows[1]
    assert re.findall(r">([^<]*)</td>", rows[0])[-3:] == ["–"] * 3  # without a network no job is slowed
    (sentence,) = bought_back(three)
    assert sentence in text
    assert [f'id="{name}"' in text for name in ("link-heat-1", "link-heat-2", "link-heat-3")] == [1, 1, 0]
    assert text.count("<summary>The most loaded links</summary>") == 2
    assert not any(re.search(r"#[0-9a-f]{6}\b", svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL))


def test_what_isolation_buys_back_is_in_the_words(three):
    together, apart = (run.summary for run in three[1:])
    (sentence,) = bought_back(three)
    hours = abs(together["mean_turnaround"] - apart["mean_turnaround"]) / 3600
    assert "“isolated” against “first-fit” under easy" in sentence
    assert f"{hours:.1f} h " in sentence
    assert ("shorter" in sentence) == (together["mean_turnaround"] >= apart["mean_turnaround"])
    assert bought_back(three[:2]) == bought_back(three[1:]) == []
    strange = dataclasses.replace(three[2], policy="an unknown one")
    assert bought_back([*three[:2], strange]) == []


def test_a_page_without_a_network_says_nothing_of_one(three, tmp_path):
    write_report(tmp_path, three, picture(TREE))
    assert list(tmp_path.glob("figures/link-heat-2.svg")) and list(tmp_path.glob("figures/contention*.svg"))
    text = write_report(tmp_path, three[:1], picture(TREE)).read_text("utf-8")
    for word in ("contention", "Slowed by others", "link-heat", "--heat-", "network", "Wait + run"):
        assert word not in text
    assert not list(tmp_path.glob("figures/link-heat*")) and not list(tmp_path.glob("figures/contention*"))


def test_a_network_without_traffic(tmp_path):
    """No jobs, jobs of one node, and one run alone."""
    links = links_of((18, 18, 4), (1, 18, 2), (1, 1, 9)).with_columns(mean_load=polars.lit(0.0))
    single = make_run(count=40)
    single = finish("single", single.jobs.filter(polars.col(SIZE) == 1), 1296, 18, {})
    for run in (without_jobs(), single):
        text = write_report(tmp_path, [on_network(run, links)], picture()).read_text("utf-8")
        assert text.count("No job of a run on a network has more than one node.") >= 3


def test_what_a_run_on_a_network_must_have(three):
    with pytest.raises(ValueError, match="jobs lacks pattern"):
        dataclasses.replace(three[1], jobs=three[1].jobs.drop("pattern"))
    with pytest.raises(ValueError, match="links lacks mean_load"):
        dataclasses.replace(three[1], links=three[1].links.drop("mean_load"))


def test_what_is_missing_of_a_run_is_named():
    """Only what has a default may be absent."""
    run = make_run(count=5)
    given = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    for name in ("network", "links"):
        del given[name]
    (own,) = distinct([types.SimpleNamespace(**given)])
    assert own.network is None and own.links is None
    for name in ("workload", "jobs"):
        rest = {key: value for key, value in given.items() if key != name}
        with pytest.raises(AttributeError, match=name):
            distinct([types.SimpleNamespace(**rest)])
