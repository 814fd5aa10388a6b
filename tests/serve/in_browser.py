"""A real browser, and what tests ask it about the page."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
import waiting

webdriver = pytest.importorskip("selenium.webdriver", reason="needs the Python package selenium")
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.by import By

until = functools.partial(waiting.until, passing=(NoSuchElementException, StaleElementReferenceException))
"""An element that is not there yet, or was drawn again, is waited for."""
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
PIXELS = """
const canvas = document.getElementById(arguments[0]);
if (canvas === null) return 0;
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
const seen = new Set();
for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 200) seen.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
return seen.size;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium with a fresh profile that keeps its console."""
    for program, package in (("chromium", "chromium"), ("chromedriver", "chromium-driver")):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}: install the Debian package {package}")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def load(browser: Any, page: str, width: int = 1440, dark: bool = False, queue: bool = True) -> None:
    """Opens the page and waits until it shows the machine, and the queue if there is one."""
    # The page of an earlier test may still ask for a server that has ended.
    browser.get("about:blank")
    browser.get_log("browser")
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(page)
    until(lambda: (rows(browser) or not queue) and browser.execute_script(PIXELS, "machine") > 3)


def rows(browser: Any) -> list[Any]:
    return browser.find_elements(By.CSS_SELECTOR, "[role=option]")


def text(browser: Any, id: str) -> str:
    found = browser.find_elements(By.ID, id)
    return found[0].text if found else ""


def row_of(browser: Any, job: str) -> Any:
    """The row of a job in the list that is shown, once it is there."""
    return until(lambda: next((row for row in rows(browser) if row.text.split("\n")[0].strip() == job), None))
