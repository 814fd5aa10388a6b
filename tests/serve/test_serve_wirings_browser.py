"""The page of machines that are not trees, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="needs the Python package selenium")
pytest.importorskip("fastapi", reason="the extra serve is not installed")
from in_browser import browser, load, until
from selenium.webdriver.common.by import By
from served import served
from topolane import machine
from topolane.serve.api import PAGE

__all__ = ["browser"]
MACHINES = {
    "dragonfly": "slingshot(nodes=96, groups=4, switches=6, cables=2)",
    "torus": "torus(size=4x5x6)",
    "pod": "torus(size=8x4x4, cube=4x4x4)",
    "HyperX": "hyperx(size=6x5, nodes=4)",
}
FEW = ("--workload", "exp-4", "--limit", "300", "--shadow", "none", "--speed", "0")
RED = """
const canvas = document.getElementById("machine");
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
let count = 0;
for (let at = 0; at < data.length; at += 4) if (data[at] === 208 && data[at + 1] === 2 && data[at + 2] === 27) count++;
return count;
"""
"""Pixels in the colour of links that two jobs may use."""
FOUND = """
const done = arguments[arguments.length - 1];
(async () => {
  const canvas = document.getElementById("machine"), found = {};
  for (let y = 1; y < canvas.clientHeight; y += 3) {
    for (let x = 1; x < canvas.clientWidth; x += 3) {
      const box = canvas.getBoundingClientRect();
      canvas.dispatchEvent(new MouseEvent("mousemove", {bubbles: true, clientX: box.left + x, clientY: box.top + y}));
      await new Promise((next) => { const {port1, port2} = new MessageChannel(); port1.onmessage = next; port2.postMessage(0); });
      const tip = canvas.parentElement.querySelector(".tip").textContent;
      if (tip.includes(": ") && !tip.startsWith("A frame")) found[tip] = (found[tip] ?? 0) + 1;
    }
  }
  done(Object.keys(found));
})();
"""
"""What the mouse finds on the machine."""


@pytest.fixture(scope="module", params=MACHINES)
def page_of(request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """A kind of wiring, and the address of a page that shows such a machine under first fit."""
    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make page")
    with served("--machine", MACHINES[request.param], "--policy", "first-fit", *FEW) as address:
        yield request.param, address


@pytest.mark.parametrize("width", [1440, 390])
def test_a_machine_that_is_no_tree_is_drawn(browser: Any, page_of: tuple[str, str], width: int) -> None:
    """Wide and narrow: switches in panels with red bars, nothing wider than the screen, and an empty console."""
    kind, address = page_of
    load(browser, address, width, queue=False)
    assert browser.get_log("browser") == []  # before a second look at the pixels, of which the browser warns
    assert browser.execute_script(RED) > 50
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    canvas = browser.find_element(By.ID, "machine")
    assert canvas.size["width"] <= browser.execute_script(
        "return arguments[0].parentElement.clientWidth", canvas
    )
    tip = browser.find_element(By.CLASS_NAME, "tip").text
    assert {"dragonfly": "is a group", "pod": "is a cube"}.get(kind, "is a plane") in tip


def test_every_node_is_found_where_it_is_drawn(browser: Any, page_of: tuple[str, str]) -> None:
    """The mouse finds each node of the machine, and says which job is on it."""
    kind, address = page_of
    load(browser, address, 390, queue=False)
    browser.set_script_timeout(300)
    names = {tip.split(":")[0] for tip in browser.execute_async_script(FOUND)}
    fabric = machine(MACHINES[kind])
    assert names == {fabric.node_name(node) for node in range(fabric.nodes)}


def test_a_job_says_whether_it_may_meet_others(browser: Any, page_of: tuple[str, str]) -> None:
    """The list of running jobs says so of those above a red bar, and the panel of a job that is selected names others."""
    _, address = page_of
    load(browser, address, queue=False)
    tab = next(
        one for one in browser.find_elements(By.CSS_SELECTOR, "[role=tab]") if one.text.startswith("Running")
    )
    tab.click()
    row = until(
        lambda: next(
            (
                row
                for row in browser.find_elements(By.CSS_SELECTOR, "[role=option]")
                if "may meet others" in row.text
            ),
            None,
        )
    )
    row.click()
    said = until(
        lambda: re.search(
            r"It may meet jobs? (\d+).* on links", browser.find_element(By.CLASS_NAME, "details").text
        )
    )
    assert said[1] != row.text.split()[0]


@pytest.mark.parametrize("kind", ["dragonfly", "HyperX"])
def test_isolated_jobs_have_no_red_bar(browser: Any, kind: str) -> None:
    """Under `isolated` nothing is red, because no two jobs may use one link."""
    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make page")
    with served("--machine", MACHINES[kind], "--policy", "isolated", *FEW) as address:
        load(browser, address, queue=False)
        assert browser.execute_script(RED) == 0
    browser.get_log("browser")  # the page says that its server is gone
