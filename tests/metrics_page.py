"""docs/reference/metrics.md and the tables of wings, what drivers export compared with it, and the rules and dashboards on it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

TREE = Path(__file__).parents[1]
DASHBOARDS_TOOL = TREE / "tools" / "dashboards.py"
REFERENCE = TREE / "docs" / "reference"
PAGE = REFERENCE / "metrics.md"
PAGES_OF_WINGS = {"sites": REFERENCE / "sites-http.md", "gang": REFERENCE / "gang-metrics.md"}
SECTION = re.compile(r"^## [^\n]*`topolane_(\w+)_\.\.\.`\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`[^|]*`) \| (gauge|counter|histogram) \|([^|]*)\|", re.MULTILINE)
WORD = re.compile(r"`(\w+)`")
DRIVERS = ("slurm", "kubernetes", "nova", "sites", "gang", "serve")


def documented(driver: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Type and labels of every metric of a driver, by its full name."""
    sections = dict(SECTION.findall(PAGES_OF_WINGS.get(driver, PAGE).read_text()))
    return {
        f"topolane_{driver}_{name}": (kind, tuple(WORD.findall(labels)))
        for names, kind, labels in ROW.findall(sections[driver])
        for name in WORD.findall(names)
    }


def exported(driver: str, text: str) -> dict[str, tuple[str, tuple[str, ...]]]:
    """The same of what a driver exports, and checks that it is so on the page.

    A metric without samples shows no labels, and has those of the page.
    """
    page, found = documented(driver), {}
    for family in text_string_to_metric_families(text):
        if not family.name.startswith("topolane_"):
            continue
        name = family.name + ("_total" if family.type == "counter" else "")
        if name.endswith("_created"):  # of a counter, in Prometheus's text format
            continue
        labels = {tuple(sorted(set(sample.labels) - {"le"})) for sample in family.samples}
        assert len(labels) <= 1, f"{name}: {labels}"
        found[name] = (family.type, labels.pop() if labels else page.get(name, ("", ()))[1])
        assert found[name] == page.get(name), f"{name} is {found[name]}, and on the page {page.get(name)}"
    return found


def rules_of(driver: str) -> Path:
    return TREE / "examples" / driver / "topolane-alerts.yml"


def dashboard_of(driver: str) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("dashboards", DASHBOARDS_TOOL)
    assert spec and spec.loader
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    found: dict[str, Any] = json.loads(tool.dashboard(driver))
    return found


def expressions(driver: str) -> list[str]:
    """The queries of a dashboard, as Grafana sends them for all instances."""
    replaced = (("$__rate_interval", "5m"), ("$__range", "1h"), ("$instance", ".*"))
    found = []
    for panel in dashboard_of(driver)["panels"]:
        for target in panel["targets"]:
            query = target["expr"]
            for word, value in replaced:
                query = query.replace(word, value)
            found.append(query)
    return found
