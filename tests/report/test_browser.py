"""The page in a real browser: it draws, it asks for nothing, and it says nothing on the console."""

from __future__ import annotations

import json
import re
import shutil

import pytest
from networks import links_of, on_network
from schedules import make_run, picture
from topolane.report import write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="needs the Python package selenium")

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
FIGURES = 9 + 2  # and a tree for each of the two runs

MEASURE = """
return [...document.querySelectorAll("figure")].map(figure => {
  const box = figure.getBoundingClientRect(), svg = figure.querySelector("svg");
  const drawn = svg ? [...svg.querySelectorAll("path, use, image, text")].filter(part => {
    const size = part.getBoundingClientRect();
    return size.width > 0 || size.height > 0;
  }).length : 0;
  return {id: figure.id, width: box.width, height: box.height, drawn,
          svg: svg ? svg.getBoundingClientRect().width * svg.getBoundingClientRect().height : 0};
});
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of two runs."""
    runs = [make_run("first fit", every=120.0), make_run("isolating", isolating=True, every=120.0)]
    return write_report(tmp_path_factory.mktemp("page"), runs, picture())


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium with a fresh profile that logs its console and every request."""
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: install the Debian package {package}")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def load(browser, page, width: int = 1280, dark: bool = False) -> None:
    """Open the page at a width in pixels, in a light or dark scheme."""
    browser.get_log("browser"), browser.get_log("performance")
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())


def faults(browser, expected: int = FIGURES) -> list[str]:
    """What is wrong with the figures of the loaded page."""
    figures = browser.execute_script(MEASURE)
    wrong = [] if len(figures) == expected else [f"{len(figures)} figures of {expected}"]
    for figure in figures:
        if figure["width"] <= 100 or figure["height"] <= 100 or figure["svg"] <= 100 * 50:
            wrong.append(f"{figure['id']} is too small")
        if figure["drawn"] < 5:
            wrong.append(f"{figure['id']} has nothing drawn")
    return wrong


def requests(browser) -> list[str]:
    """The addresses that the page asked for."""
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_every_figure_is_drawn_and_nothing_is_asked_for(browser, page, width, dark):
    load(browser, page, width, dark)
    assert faults(browser) == []
    assert [url for url in requests(browser) if url not in (page.as_uri(), "data:,")] == []
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width


CELLS = """
return [...document.querySelectorAll("#link-heat-section figure")].map(figure => {
  const marks = [...figure.querySelectorAll("title ~ path")];
  const colour = mark => (({fill, stroke}) => fill === "none" ? stroke : fill)(getComputedStyle(mark));
  return {drawn: marks.filter(mark => mark.getBoundingClientRect().width > 0).length,
          colours: [...new Set(marks.map(colour))],
          tip: figure.querySelector("g > title").textContent};
});
"""


@pytest.fixture(scope="module")
def network_page(tmp_path_factory):
    """A report of three runs, two of them on a network."""
    links = links_of((18, 18, 4), (1, 18, 2), (1, 1, 9))
    plain = make_run("first-fit", count=200, every=120.0)
    apart = make_run("isolated", count=200, every=120.0, isolating=True)
    plain.summary["mean_turnaround"] = plain.summary["mean_wait"] + 3600.0
    runs = [plain, on_network(plain, links), on_network(apart, links, slowed=False)]
    return write_report(tmp_path_factory.mktemp("network"), runs, picture())


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_what_runs_on_a_network_add_is_drawn(browser, network_page, width, dark):
    """Three figures of contention, two maps of links and three trees in addition to the others; the cells in
    nine colours, which are others in the dark; the most loaded links in a table that is open."""
    load(browser, network_page, width, dark)
    assert faults(browser, 9 + 3 + 2 + 3) == []
    assert [url for url in requests(browser) if url not in (network_page.as_uri(), "data:,")] == []
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    for cells in browser.execute_script(CELLS):
        assert cells["drawn"] >= 3 * 9
        assert len(cells["colours"]) == 9
        least = ["rgb(243, 246, 138)", "rgb(74, 12, 107)"]
        assert [colour in cells["colours"] for colour in least] == [not dark, dark]
        assert cells["tip"].startswith("node to leaf: ")
    tables = browser.find_elements("css selector", "#link-heat-section details[open] tbody")
    assert [len(table.find_elements("tag name", "tr")) for table in tables] == [5, 5]
    assert all(table.is_displayed() for table in tables)
    heads = browser.find_elements("css selector", "#summary thead th")
    assert [head.text.split("\n")[0] for head in heads[-4:]] == [
        "Wait + run (h)", "Slowed by others", "Worst", "Node hours lost",
    ]  # fmt: skip


def test_the_dark_page_is_dark(browser, page):
    colour = "return getComputedStyle(document.body).backgroundColor"
    load(browser, page)
    light = browser.execute_script(colour)
    load(browser, page, dark=True)
    assert (light, browser.execute_script(colour)) == ("rgb(255, 255, 255)", "rgb(23, 27, 32)")


def test_a_heading_sorts_the_summary(browser, page):
    load(browser, page)
    names = "return [...document.querySelectorAll('#summary tbody th')].map(cell => cell.textContent)"
    head = browser.find_elements("css selector", "#summary thead button")[1]
    assert head.text.startswith("Utilisation while jobs wait")
    head.click()
    up = browser.execute_script(names)
    head.click()
    assert browser.execute_script(names) == up[::-1]
    values = browser.execute_script(
        "return [...document.querySelectorAll('#summary tbody tr')].map(r => +r.cells[1].dataset.value)"
    )
    assert values == sorted(values, reverse=True)


def test_a_broken_page_is_noticed(browser, page, tmp_path):
    """The measure of the tests above: without a figure, with an empty one, with a request."""
    text = page.read_text("utf-8")
    without = tmp_path / "without.html"
    without.write_text(re.sub(r'<figure id="aph">.*?</figure>', "", text, flags=re.DOTALL), "utf-8")
    load(browser, without)
    assert faults(browser) == ["10 figures of 11"]

    hollow = tmp_path / "hollow.html"
    hollow.write_text(
        re.sub(r'(<figure id="aph">.*?<svg[^>]*>).*?(</svg>)', r"\1\2", text, flags=re.DOTALL), "utf-8"
    )
    load(browser, hollow)
    assert faults(browser) == ["aph has nothing drawn"]

    asking = tmp_path / "asking.html"
    asking.write_text(text.replace("</main>", '<img src="missing.png" alt="x"></main>'), "utf-8")
    load(browser, asking)
    assert browser.get_log("browser") != []
