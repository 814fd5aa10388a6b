"""A real Prometheus that scrapes a driver, with the driver's alert rules."""

from __future__ import annotations

import contextlib
import functools
import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metrics_page import documented, exported, expressions, rules_of
from waiting import DEADLINE, until


class Prometheus:
    """Its API."""

    def __init__(self, port: int) -> None:
        self._api = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **arguments: str) -> Any:
        """The data of an answer. Raises RuntimeError with Prometheus's own words, and OSError before it is ready."""
        url = f"{self._api}/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=DEADLINE) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                raise
            raise RuntimeError(error.read().decode()) from error

    def values(self, query: str) -> list[float]:
        """The present values of a query."""
        return [float(one["value"][1]) for one in self.get("query", query=query)["result"]]

    def target(self) -> dict[str, Any]:
        """What it says of the driver that it scrapes; nothing before it has begun."""
        targets = self.get("targets")["activeTargets"]
        return dict(targets[0]) if targets else {"health": "unknown"}


@contextlib.contextmanager
def scraping(binary: str, folder: Path, driver: str, address: str, **scrape: Any) -> Iterator[Prometheus]:
    """A Prometheus that has scraped the driver at an address once. scrape: more of its scrape configuration."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    job = {"job_name": driver, "static_configs": [{"targets": [address]}], **scrape}
    every = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    config = {"global": every, "rule_files": [str(rules_of(driver))], "scrape_configs": [job]}
    (folder / "prometheus.yml").write_text(json.dumps(config))
    command = [binary, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/prometheus"]
    command.append(f"--web.listen-address=127.0.0.1:{port}")
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            found = Prometheus(port)
            until(lambda: found.target()["health"] != "unknown", "Prometheus scrapes")
            yield found
        finally:
            process.terminate()
            process.wait(DEADLINE)


def check_scraped(prometheus: Prometheus, driver: str, text: str) -> None:
    """Prometheus stores every metric of a text, with the page's types and labels, and evaluates all rules and panels.

    text: what the driver exports at the same time.
    """
    until(lambda: prometheus.target()["health"] == "up", "a scrape without an error")
    assert prometheus.target()["lastError"] == ""
    names = exported(driver, text)
    samples = {line.partition(" ")[0].partition("{")[0] for line in text.splitlines() if line[:1] != "#"}
    stored = {f"{name}_bucket" if kind == "histogram" else name for name, (kind, _) in names.items()}
    for name in sorted(stored & samples):
        until(functools.partial(prometheus.values, f"count({name})"), f"Prometheus stores {name}")
    kinds = {one["metric"]: one["type"] for one in prometheus.get("targets/metadata")}
    # In OpenMetrics, which Prometheus asks for, the family of a counter has no `_total`.
    assert all(
        kind in (kinds.get(name), kinds.get(name.removesuffix("_total"))) for name, (kind, _) in names.items()
    )
    for query in expressions(driver):
        prometheus.values(query)
    until(lambda: {rule["health"] for rule in rules_in(prometheus)} == {"ok"}, "the rules are evaluated")


def rules_in(prometheus: Prometheus) -> list[dict[str, Any]]:
    """The rules and their health."""
    return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]


def firing(prometheus: Prometheus) -> set[str]:
    """The rules whose alerts fire or are about to."""
    return {rule["name"] for rule in rules_in(prometheus) if rule["state"] != "inactive"}


def check_quiet(prometheus: Prometheus, but: frozenset[str] = frozenset()) -> None:
    """No alert fires or is about to, but for these. An alert of missing metrics may be, until the rules see the first scrape."""
    until(lambda: firing(prometheus) <= but, "no alert is about to fire")


def check_complete(driver: str, text: str, without_samples: tuple[str, ...] = ()) -> None:
    """A text has every metric of the page, but for those that have no samples and no type before something happens."""
    missing = set(documented(driver)) - set(exported(driver, text))
    assert missing == {f"topolane_{driver}_{name}" for name in without_samples}
