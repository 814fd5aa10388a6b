"""The page in a real browser: what a viewer sees, clicks and types."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

webdriver = pytest.importorskip("selenium.webdriver", reason="needs the Python package selenium")
from in_browser import PIXELS, browser, load, rows, text, until
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select
from served import SMALL, served

__all__ = ["browser"]


@pytest.mark.parametrize(("width", "dark"), [(1440, False), (1440, True), (390, False), (390, True)])
def test_the_page_shows_the_machine_and_says_nothing_on_the_console(
    browser: Any, page: str, width: int, dark: bool
) -> None:
    """Wide and narrow, light and dark: machine, coming hours and figures are drawn, nothing is wider than the screen, and the
    console is empty."""
    load(browser, page, width, dark)
    until(lambda: browser.execute_script(PIXELS, "gantt") > 5)
    until(lambda: len(browser.find_elements(By.CSS_SELECTOR, "figure canvas")) == 3)
    until(lambda: browser.find_elements(By.CSS_SELECTOR, "tbody td"))
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    paper = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") is not dark
    assert browser.get_log("browser") == []


CHOSEN = 'return document.querySelector("[aria-selected=true][role=option]")?.innerText ?? ""'
"""The job that the list has chosen."""


def test_why_a_job_waits_is_one_click_away(browser: Any, page: str) -> None:
    """A click on the first job of the queue shows the engine's sentences for it."""
    load(browser, page)
    rows(browser)[0].click()
    said = until(lambda: "first in the queue" in text(browser, "why") and text(browser, "why"))
    assert "wanted" in said
    assert browser.get_log("browser") == []


def test_the_answer_comes_into_sight_on_a_phone(browser: Any, page: str) -> None:
    """On a phone whose screen the queue fills, a tap on a job brings the sentences that say why it waits into sight."""
    load(browser, page, 390)
    queue = browser.find_element(By.CSS_SELECTOR, "[role=listbox]")
    browser.execute_script("arguments[0].scrollIntoView({block: 'start'})", queue)
    rows(browser)[0].click()
    until(lambda: "first in the queue" in text(browser, "why"))
    until(lambda: browser.execute_script(IN_SIGHT))


IN_SIGHT = """
const box = document.getElementById("why").getBoundingClientRect();
return box.top >= 0 && box.bottom <= window.innerHeight;
"""
CONTRAST = """
const numbers = (colour) => (colour.match(/[0-9.]+/g) ?? []).map(Number);
const linear = (part) => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
const light = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = numbers(getComputedStyle(at).backgroundColor);
    if (colour.length === 3) return colour;
  }
};
const found = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const element = texts.currentNode.parentElement;
  if (!texts.currentNode.data.trim() || element.closest("noscript, script, :disabled")) continue;
  const [one, other] = [light(numbers(getComputedStyle(element).color)), light(behind(element))].sort();
  found.push([(Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05), texts.currentNode.data.trim()]);
}
return found;
"""
"""The contrast of each text with what is behind it, by the formula of WCAG 2."""


@pytest.mark.parametrize("dark", [False, True])
def test_all_text_stands_out(browser: Any, page: str, dark: bool) -> None:
    """Light and dark: every text has a contrast of 4.5 to 1 or more, which WCAG 2 asks for, also in a selected row."""
    load(browser, page, dark=dark)
    rows(browser)[0].click()
    until(lambda: "first in the queue" in text(browser, "why"))
    found = browser.execute_script(CONTRAST)
    assert len(found) > 50
    assert [row for row in found if row[0] < 4.5] == []


def test_a_click_on_a_node_selects_its_job(browser: Any, page: str) -> None:
    """A click on the machine shows the job that holds the node: its nodes, and until when."""
    load(browser, page)
    canvas = browser.find_element(By.ID, "machine")
    for x in range(20, 200, 12):
        webdriver.ActionChains(browser).move_to_element_with_offset(
            canvas, x - canvas.size["width"] // 2, 48 - canvas.size["height"] // 2
        ).click().perform()
        if browser.find_elements(By.CLASS_NAME, "details"):
            break
    assert "Runs since" in browser.find_element(By.CLASS_NAME, "details").text


def test_the_form_answers(browser: Any, page: str) -> None:
    """Nodes, hours and a policy: the page says when and where the job would start, why not now, and what would make room."""
    load(browser, page)
    nodes = browser.find_element(By.NAME, "nodes")
    nodes.clear()
    nodes.send_keys("200" + Keys.ENTER)
    said = until(lambda: "would start in" in text(browser, "answer") and text(browser, "answer"))
    assert "200 nodes" in said and "Why not now" in said and "without job" in said
    assert browser.get_log("browser") == []


def test_what_is_typed_stays_while_the_page_changes(browser: Any, page: str) -> None:
    """While time goes on and the page is drawn again, the form keeps what a viewer has typed and chosen."""
    with served("--limit", "1500", "--shadow", "none", "--speed", "60") as running:
        load(browser, running)
        nodes = browser.find_element(By.NAME, "nodes")
        nodes.clear()
        nodes.send_keys("200")
        policy = Select(browser.find_element(By.NAME, "policy"))
        policy.select_by_visible_text("jigsaw")
        before = text(browser, "time")
        until(lambda: text(browser, "time") != before)
        assert nodes.get_property("value") == "200"
        assert policy.first_selected_option.text == "jigsaw"
    browser.get_log("browser")  # the page says that its server is gone


def test_time_can_be_dragged_back(browser: Any, page: str) -> None:
    """The slider shows an earlier moment with its own jobs; the button shows the present again."""
    load(browser, page)
    slider = until(lambda: browser.find_elements(By.ID, "slider"))[0]
    before, figures = text(browser, "time"), browser.find_element(By.CLASS_NAME, "figures").text
    webdriver.ActionChains(browser).drag_and_drop_by_offset(slider, -slider.size["width"] // 4, 0).perform()
    until(lambda: browser.find_element(By.CLASS_NAME, "figures").text != figures)
    assert text(browser, "time") != before
    assert browser.find_element(By.ID, "now").text == "Back to now"
    browser.find_element(By.ID, "now").click()
    until(lambda: browser.find_element(By.CLASS_NAME, "figures").text == figures)
    assert text(browser, "time") == before
    assert browser.get_log("browser") == []


@pytest.mark.parametrize(
    ("question", "section", "what"),
    [("series", "h-figures", "The figures"), ("outlook", "h-hours", "The coming hours")],
)
def test_what_could_not_be_read_is_reported(
    browser: Any, page: str, question: str, section: str, what: str
) -> None:
    """If figures or coming hours cannot be read, their place on the page says so and why, and no longer once they can be read."""
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": [f"*/api/{question}*"]})
    try:
        load(browser, page)
        place = f"//section[@aria-labelledby='{section}']"
        message = until(lambda: browser.find_element(By.XPATH, f"{place}//*[@class='wrong']").text)
        assert message == f"{what} could not be read: Failed to fetch. The page tries again."
    finally:
        browser.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        browser.execute_cdp_cmd("Network.disable", {})
    until(lambda: not browser.find_elements(By.XPATH, f"{place}//*[@class='wrong']"))
    assert browser.find_element(By.XPATH, place).text.splitlines()[0] in ("Figures", "Coming hours")


def test_all_of_it_works_by_keyboard(browser: Any, page: str) -> None:
    """Without a mouse: Tab reaches queue, form, machine and slider; arrow keys go from job to job and say why it waits."""
    load(browser, page)
    until(lambda: browser.find_elements(By.ID, "slider"))
    reached = set()
    for _ in range(20):
        webdriver.ActionChains(browser).send_keys(Keys.TAB).perform()
        active = browser.switch_to.active_element
        name = active.get_attribute("aria-label") or active.get_attribute("name") or active.text
        reached.add("machine" if name.startswith("The machine") else name)
    assert {"Time", "machine", "queue", "nodes", "hours", "policy", "When would it start?"} <= reached
    queue = browser.find_element(By.CSS_SELECTOR, "[role=listbox]")
    queue.send_keys(Keys.ARROW_DOWN)
    first = until(lambda: browser.execute_script(CHOSEN))
    until(lambda: "wanted" in text(browser, "why"))
    queue.send_keys(Keys.ARROW_DOWN)
    until(lambda: browser.execute_script(CHOSEN) not in ("", first))
    browser.find_element(By.ID, "machine").send_keys(Keys.ARROW_RIGHT)
    until(lambda: "Runs since" in browser.find_element(By.CLASS_NAME, "details").text)


def test_the_token_is_asked_for(browser: Any, tmp_path: Any) -> None:
    """A page with a token shows a form for it and nothing else; with the token it shows the machine."""
    token = "viewers-" + "v" * 16
    (tmp_path / "token").write_text(token)
    with served(*SMALL, "--token-file", str(tmp_path / "token")) as locked:
        browser.get(locked)
        field = until(lambda: browser.find_elements(By.NAME, "token"))[0]
        assert not browser.find_elements(By.ID, "machine")
        field.send_keys("w" * 24 + Keys.ENTER)
        until(lambda: "the token is wrong" in browser.find_element(By.ID, "page").text)
        field.clear()
        field.send_keys(token + Keys.ENTER)
        until(lambda: rows(browser))
        browser.refresh()
        until(lambda: rows(browser))
        assert token not in browser.execute_script("return JSON.stringify(sessionStorage)")
        browser.get("about:blank")


def test_another_port_of_the_host_gets_nothing_that_opens_the_page(browser: Any, tmp_path: Any) -> None:
    """A server on another port of the same host, which a viewer visits, receives no session: it can be another user's."""
    token = "viewers-" + "v" * 16
    (tmp_path / "token").write_text(token)
    received: list[str] = []

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            received.append(str(self.headers))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    with (
        served(*SMALL, "--token-file", str(tmp_path / "token")) as locked,
        HTTPServer(("127.0.0.1", 0), Other) as other,
    ):
        threading.Thread(target=other.serve_forever, daemon=True).start()
        browser.get(locked)
        until(lambda: browser.find_elements(By.NAME, "token"))[0].send_keys(token + Keys.ENTER)
        until(lambda: rows(browser))
        session = browser.execute_script("return sessionStorage.getItem('topolane-session')")
        browser.get(f"http://127.0.0.1:{other.server_port}/")
        kept = browser.execute_script("return JSON.stringify([document.cookie, sessionStorage])")
        other.shutdown()
    assert received and not any("cookie:" in one.lower() or session in one for one in received)
    assert session not in kept


def test_the_token_is_asked_for_again_after_a_restart(browser: Any, tmp_path: Any) -> None:
    """A session ends with the server that gave it. The page then asks for the token, and goes on with the new server."""
    token = "viewers-" + "v" * 16
    (tmp_path / "token").write_text(token)
    words = (*SMALL, "--token-file", str(tmp_path / "token"))
    with served(*words) as first:
        browser.get(first)
        until(lambda: browser.find_elements(By.NAME, "token"))[0].send_keys(token + Keys.ENTER)
        until(lambda: rows(browser))
    until(lambda: "The page tries again" in browser.find_element(By.ID, "page").text)
    with served(*words, port=int(first.rpartition(":")[2])):
        until(lambda: browser.find_elements(By.NAME, "token"))[0].send_keys(token + Keys.ENTER)
        until(lambda: rows(browser))
        browser.get("about:blank")
    browser.get_log("browser")  # the page says that its server is gone
