"""The alert rules and the dashboards of all drivers, checked by Prometheus's promtool."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip(
    "prometheus_client", reason="the extras slurm, nova, sites, gang and serve are not installed"
)
from metrics_page import DASHBOARDS_TOOL, DRIVERS, PAGE, TREE, dashboard_of, documented, expressions, rules_of

NAME = re.compile(r"\btopolane_[a-z]+_[a-z0-9_]+")

FIRES: dict[str, dict[str, dict[str, str]]] = {
    "slurm": {
        "TopolaneSlurmMetricsMissing": {},
        "TopolaneSlurmDown": {"up": "0x60"},
        "TopolaneSlurmPluginNotActive": {"up": "1x60", "active": "0x60"},
        "TopolaneSlurmEngineDoesNotDecide": {"up": "1x60", "active": "1x60", "deciding": "0x60"},
        "TopolaneSlurmStateUnreadable": {"up": "1x60", "problems": "2x60", 'jobs{state="waiting"}': "7x60"},
        "TopolaneSlurmStateStale": {"up": "1x60", "active": "1x60", "stale": "1x60"},
        "TopolaneSlurmStockDecides": {
            "up": "1x60",
            'calls_total{end="placed"}': "0+90x60",
            'calls_total{end="stock_slow"}': "0+10x60",
        },
        "TopolaneSlurmUnknownNodes": {"up": "1x60", 'calls_total{end="stock_unknown"}': "0+1x60"},
        "TopolaneSlurmLinksUnwritten": {"up": "1x60", "links_unwritten_total": "0+1x60"},
        "TopolaneSlurmIsolatedJobsShareLinks": {"up": "1x60", "isolated_jobs_sharing_links": "2x60"},
        "TopolaneSlurmJobStarves": {
            "up": "1x120",
            'refused_wait_seconds{kind="no-area"}': "90000x120",
            'nodes{state="idle"}': "4x120",
        },
        "TopolaneSlurmCallsSlow": {
            "up": "1x60",
            'call_seconds_bucket{le="0.001"}': "0+90x60",
            'call_seconds_bucket{le="0.016"}': "0+100x60",
            'call_seconds_bucket{le="+Inf"}': "0+100x60",
            "call_limit_seconds": "0.002x60",
        },
    },
    "kubernetes": {
        "TopolaneKubernetesMetricsMissing": {},
        "TopolaneKubernetesPluginFails": {
            "call_limit_seconds": "0.2x60",
            'failures_total{entry="PreFilter"}': "0+1x60",
        },
        "TopolaneKubernetesStockDecides": {
            "call_limit_seconds": "0.2x60",
            'calls_total{end="placed"}': "0+90x60",
            'calls_total{end="stock_slow"}': "0+10x60",
        },
        "TopolaneKubernetesEngineUnable": {
            "call_limit_seconds": "0.2x60",
            'calls_total{end="wait_failed"}': "0+1x60",
        },
        "TopolaneKubernetesGroupStarves": {
            "call_limit_seconds": "0.2x120",
            'refused_wait_seconds{kind="would-share-links"}': "90000x120",
            'nodes{state="idle"}': "4x120",
        },
        "TopolaneKubernetesGroupNeverFits": {
            "call_limit_seconds": "0.2x60",
            'refused_jobs{kind="never"}': "2x60",
        },
        "TopolaneKubernetesCallsSlow": {
            'call_seconds_bucket{le="0.1"}': "0+90x60",
            'call_seconds_bucket{le="0.5"}': "0+100x60",
            'call_seconds_bucket{le="+Inf"}': "0+100x60",
            "call_limit_seconds": "0.2x60",
        },
    },
    "nova": {
        "TopolaneNovaMetricsMissing": {},
        "TopolaneNovaDown": {"up": "0x60"},
        "TopolaneNovaTopologyProblems": {"up": "1x60", "problems": "1x60"},
        "TopolaneNovaNodesOffTree": {"up": "1x120", "nodes_off_tree": "2x120"},
        "TopolaneNovaIsolatedGroupsShareLinks": {
            "up": "1x60",
            "isolated_jobs_sharing_links": "1x60",
        },
        "TopolaneNovaRefusalsUnknown": {"up": "1x60", "refusals_known": "0x60"},
        "TopolaneNovaHintsInvalid": {"up": "1x60", 'refusals_total{kind="invalid-hint"}': "0+1x60"},
        "TopolaneNovaGroupsNeverFit": {"up": "1x60", 'refusals_total{kind="cannot-isolate"}': "0+1x60"},
    },
    "sites": {
        "TopolaneSitesMetricsMissing": {},
        "TopolaneSitesPaused": {"paused": "1x1600"},
        "TopolaneSitesNodesSilent": {"paused": "0x60", 'nodes{site="east",state="out_of_service"}': "1x60"},
        "TopolaneSitesPlanOld": {"paused": "0x60", "programs": "2x60", "plan_age_seconds": "4000+60x60"},
        "TopolaneSitesGuestLost": {"paused": "0x120", 'moves{state="lost"}': "0x60 1x60"},
        "TopolaneSitesMovesFail": {"paused": "0x120", 'moves{state="rolled-back"}': "2x60 6x60"},
        "TopolaneSitesProgramSlow": {"paused": "0x180", 'program_loss_ratio{program="7"}': "0.8x180"},
    },
    "gang": {
        "TopolaneGangMetricsMissing": {},
        "TopolaneGangDown": {"up": "0x60"},
        "TopolaneGangMisses": {"up": "1x120", "problems": "1x120"},
        "TopolaneGangJobLost": {"up": "1x60", 'jobs{state="lost"}': "1x60"},
        "TopolaneGangJobLacksCores": {
            "up": "1x60",
            'job_slice_seconds_total{number="3",state="ran"}': "0+30x60",
            'job_slice_seconds_total{number="3",state="ready"}': "0+20x60",
        },
    },
    "serve": {
        "TopolaneServeMetricsMissing": {},
        "TopolaneServeSourceDown": {"up": "0x60"},
        "TopolaneServeLooksLate": {"up": "1x60", "look_age_seconds": "300x60"},
        "TopolaneServeFull": {"up": "1x60", "viewers": "198x60", "viewers_limit": "200x60"},
    },
}
"""Series for which each rule fires, in promtool's notation."""

WELL: dict[str, dict[str, str]] = {
    "slurm": {
        "up": "1x120",
        "active": "1x120",
        "stale": "0x120",
        "problems": "0x120",
        'jobs{state="waiting"}': "7x120",
        'calls_total{end="placed"}': "0+90x120",
        'calls_total{end="stock"}': "0+90x120",
        'calls_total{end="stock_slow"}': "0x120",
        'calls_total{end="stock_unknown"}': "5x120",
        "links_unwritten_total": "3x120",
        "isolated_jobs_sharing_links": "0x120",
        'refused_wait_seconds{kind="no-area"}': "600x120",
        'refused_wait_seconds{kind="not-now"}': "900000x120",
        'nodes{state="idle"}': "4x120",
        'call_seconds_bucket{le="0.001"}': "0+100x120",
        'call_seconds_bucket{le="+Inf"}': "0+100x120",
        "call_limit_seconds": "0.002x120",
    },
    "kubernetes": {
        "call_limit_seconds": "0.2x120",
        'failures_total{entry="PreFilter"}': "3x120",
        'calls_total{end="placed"}': "0+90x120",
        'calls_total{end="refused"}': "0+900x120",
        'calls_total{end="stock_failed"}': "2x120",
        'refused_wait_seconds{kind="would-share-links"}': "600x120",
        'refused_wait_seconds{kind="not-now"}': "900000x120",
        'refused_jobs{kind="never"}': "0x120",
        'nodes{state="idle"}': "4x120",
        'call_seconds_bucket{le="0.1"}': "0+100x120",
        'call_seconds_bucket{le="+Inf"}': "0+100x120",
    },
    "nova": {
        "up": "1x120",
        "problems": "0x120",
        "nodes_off_tree": "0x120",
        "isolated_jobs_sharing_links": "0x120",
        "refusals_known": "1x120",
        'refusals_total{kind="invalid-hint"}': "4x120",
        'refusals_total{kind="not-now"}': "0+5x120",
        'refusals_total{kind="cannot-isolate"}': "9x120",
    },
    "sites": {
        "paused": "0x120",
        "programs": "2x120",
        'nodes{site="east",state="out_of_service"}': "0x120",
        'nodes{site="east",state="busy"}': "2x120",
        "plan_age_seconds": "30x120",
        'moves{state="lost"}': "1x120",
        'moves{state="rolled-back"}': "5x120",
        'program_loss_ratio{program="7"}': "0.1x120",
    },
    "gang": {
        "up": "1x120",
        "problems": "0x120",
        'jobs{state="lost"}': "0x120",
        'jobs{state="running"}': "3x120",
        'job_slice_seconds_total{number="3",state="ran"}': "0+30x120",
        'job_slice_seconds_total{number="3",state="ready"}': "0+1x120",
    },
    "serve": {
        "up": "1x120",
        "look_age_seconds": "2x120",
        "viewers": "3x120",
        "viewers_limit": "200x120",
    },
}
"""Series of a driver that works."""

NEAR: list[tuple[str, str, dict[str, str]]] = [
    ("slurm", "PluginNotActive", {"up": "0x60", "active": "0x60"}),
    ("slurm", "StateUnreadable", {"up": "1x60", "problems": "2x60", 'jobs{state="running"}': "7x60"}),
    (
        *("slurm", "StockDecides"),
        {'calls_total{end="placed"}': "0+995x60", 'calls_total{end="stock_slow"}': "0+5x60"},
    ),
    (
        *("slurm", "JobStarves"),
        {'refused_wait_seconds{kind="no-area"}': "90000x120", 'nodes{state="busy"}': "4x120"},
    ),
    (
        *("kubernetes", "StockDecides"),
        {'calls_total{end="placed"}': "0+995x60", 'calls_total{end="stock_slow"}': "0+5x60"},
    ),
    (
        *("kubernetes", "GroupStarves"),
        {'refused_wait_seconds{kind="would-share-links"}': "90000x120", 'nodes{state="idle"}': "0x120"},
    ),
    ("sites", "PlanOld", {"paused": "0x60", "programs": "0x60", "plan_age_seconds": "4000+60x60"}),
    ("sites", "PlanOld", {"paused": "1x60", "programs": "2x60", "plan_age_seconds": "4000+60x60"}),
    ("sites", "MovesFail", {"paused": "0x120", 'moves{state="rolled-back"}': "2x60 4x60"}),
    ("sites", "ProgramSlow", {"paused": "0x180", 'program_loss_ratio{program="7"}': "0.4x180"}),
    (
        *("gang", "JobLacksCores"),
        {
            'job_slice_seconds_total{number="3",state="ran"}': "0+42x60",
            'job_slice_seconds_total{number="3",state="ready"}': "0+8x60",
        },
    ),
    ("serve", "LooksLate", {"up": "0x60", "look_age_seconds": "300x60"}),
    ("serve", "LooksLate", {"up": "1x60", "look_age_seconds": "100x60"}),
    ("serve", "Full", {"up": "1x60", "viewers": "170x60", "viewers_limit": "200x60"}),
]
"""Series that come near to what a rule, without the name of its driver, fires for, and for which it does not fire."""

AT_ONCE = {
    *("TopolaneSlurmUnknownNodes", "TopolaneSlurmLinksUnwritten", "TopolaneKubernetesPluginFails"),
    *("TopolaneNovaHintsInvalid", "TopolaneNovaGroupsNeverFit", "TopolaneSitesGuestLost"),
    *("TopolaneSitesMovesFail", "TopolaneGangJobLost"),
}
"""Rules that do not wait before they fire: what they count does not happen in a system that works."""

PATIENT = {"TopolaneSitesPaused": "1500m", "TopolaneSitesProgramSlow": "150m"}
"""Rules that wait for long before they fire."""
SLOW = {
    "TopolaneSlurmJobStarves",
    "TopolaneKubernetesGroupStarves",
    "TopolaneNovaNodesOffTree",
    "TopolaneGangMisses",
}
SLOW |= {"TopolaneSitesGuestLost", "TopolaneSitesMovesFail"}


def check(promtool: str, *words: object) -> None:
    done = subprocess.run([promtool, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def series(driver: str, values: dict[str, str]) -> list[dict[str, str]]:
    rows = []
    for key, numbers in values.items():
        base, _, labels = key.partition("{")
        inside = ",".join(filter(None, ['instance="a"', labels.rstrip("}")]))
        parts = [part if "+" in part else part.replace("x", "+0x") for part in numbers.split()]
        rows.append({"series": f"topolane_{driver}_{base}{{{inside}}}", "values": " ".join(parts)})
    return rows


def firing(alert: str, at: str, count: int) -> dict[str, Any]:
    """promtool's question whether `count` alerts of a rule fire at a time."""
    expected = [{"labels": "{}", "value": count}] if count else []
    query = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return {"expr": query, "eval_time": at, "exp_samples": expected}


def run(
    promtool: str, directory: Path, driver: str, given: dict[str, str], asked: list[dict[str, Any]]
) -> None:
    """Has promtool ask these questions of the driver's rules over series."""
    tests = [{"interval": "1m", "input_series": series(driver, given), "promql_expr_test": asked}]
    file = directory / "test.yml"
    body = {"rule_files": [str(rules_of(driver))], "evaluation_interval": "1m", "tests": tests}
    file.write_text(json.dumps(body))
    check(promtool, "test", "rules", file)


@pytest.mark.parametrize("driver", DRIVERS)
def test_rules_and_panels_use_metrics_of_the_page(driver: str) -> None:
    """Rules, dashboards and test series name only metrics that the reference page lists; tests of each driver hold that it
    exports these. Every metric has a panel."""
    known = set(documented(driver))

    def base(name: str) -> str:
        return name.removesuffix("_bucket")

    rules, panels = rules_of(driver).read_text(), "\n".join(expressions(driver))
    used = {base(name) for text in (rules, panels) for name in NAME.findall(text)}
    given = {
        base(re.split(r"[{]", key)[0]) for case in (WELL[driver], *FIRES[driver].values()) for key in case
    }
    used |= {f"topolane_{driver}_{name}" for name in given}
    assert used <= known, used - known
    drawn = {base(name) for name in NAME.findall(panels)}
    assert known == drawn, known - drawn


@pytest.mark.parametrize("driver", DRIVERS)
def test_no_panel_stands_on_another(driver: str) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard_of(driver)["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24
        taken |= cells


def test_the_tool_writes_a_dashboard_of_each_driver(tmp_path: Path) -> None:
    """`make dashboards` writes FOLDER/DRIVER.json and prints these names."""
    done = subprocess.run(
        [sys.executable, DASHBOARDS_TOOL, tmp_path], capture_output=True, text=True, check=True
    )
    assert {Path(line) for line in done.stdout.splitlines()} == {
        tmp_path / f"{driver}.json" for driver in DRIVERS
    }
    for driver in DRIVERS:
        assert json.loads((tmp_path / f"{driver}.json").read_text()) == dashboard_of(driver)


@pytest.mark.parametrize("driver", DRIVERS)
def test_each_rule_says_what_to_do(driver: str) -> None:
    """The name of a rule begins with its driver. It has a sentence, a severity, and what to do: in the guide or with the rule."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing")
    (group,) = yaml.safe_load(rules_of(driver).read_text())["groups"]
    guides = {"slurm": "slurm-operations", "kubernetes": "kubernetes"}
    guide = (TREE / "docs" / "guides" / f"{guides[driver]}.md").read_text() if driver in guides else ""
    for rule in group["rules"]:
        assert rule["alert"].startswith(f"Topolane{driver.capitalize()}")
        assert rule["annotations"]["summary"].endswith(".") and rule["labels"]["severity"]
        assert f"`{rule['alert']}`" in guide or rule["annotations"]["description"].endswith(".")


def test_kinds_and_ends_in_rules_exist() -> None:
    """A rule that filters by a kind of refusal or an end of a call names one that exists."""
    from topolane.cluster.decided import REFUSALS
    from topolane.slurm import plugin_state

    words = "".join(rules_of(driver).read_text() for driver in DRIVERS)
    ends = set(re.findall(r"stock_[a-z]+", words))
    assert ends and ends <= set(plugin_state.ENDS)
    kinds = {kind for found in re.findall(r'kind=~?"([^"]+)"', words) for kind in found.split("|")}
    listed = set(
        re.findall(r"^\| `([a-z-]+)` \|", PAGE.read_text().partition("## Kinds of refusals")[2], re.MULTILINE)
    )
    assert kinds <= listed and REFUSALS.keys() <= listed


@pytest.mark.parametrize("driver", DRIVERS)
def test_promtool_takes_the_rules_and_the_queries(promtool: str, tmp_path: Path, driver: str) -> None:
    """promtool parses the rules, and every query of every panel."""
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(expressions(driver))]
    file = tmp_path / "panels.yml"
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    check(promtool, "check", "rules", rules_of(driver), file)


CASES = [(driver, alert) for driver in DRIVERS for alert in [*FIRES[driver], None]]


@pytest.mark.parametrize(("driver", "alert"), CASES)
def test_a_rule_fires_for_its_fault_alone(
    promtool: str, tmp_path: Path, driver: str, alert: str | None
) -> None:
    """Each rule, and no other of its driver, fires for series that show its fault; none fires for a driver that works."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing")
    (group,) = yaml.safe_load(rules_of(driver).read_text())["groups"]
    assert {rule["alert"] for rule in group["rules"]} == FIRES[driver].keys()
    given = WELL[driver] if alert is None else FIRES[driver][alert]
    at = PATIENT.get(alert or "", "110m" if alert in SLOW or alert is None else "50m")
    asked = [firing(one, at, int(one == alert)) for one in FIRES[driver]]
    run(promtool, tmp_path, driver, given, asked)


@pytest.mark.parametrize(("driver", "alert"), [case for case in CASES if case[1] is not None])
def test_a_rule_waits_before_it_fires(promtool: str, tmp_path: Path, driver: str, alert: str) -> None:
    """A fault that has not lasted as long as its rule says fires nothing yet; rules that fire at once are listed here."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is missing")
    (group,) = yaml.safe_load(rules_of(driver).read_text())["groups"]
    (patience,) = (rule.get("for") for rule in group["rules"] if rule["alert"] == alert)
    assert (patience is None) == (alert in AT_ONCE)
    if patience is not None:
        minutes = int(patience[:-1]) * {"m": 1, "h": 60}[patience[-1]]
        assert minutes > 1
        run(promtool, tmp_path, driver, FIRES[driver][alert], [firing(alert, f"{minutes - 1}m", 0)])


@pytest.mark.parametrize(("driver", "alert", "given"), NEAR)
def test_a_rule_does_not_fire_for_what_is_only_near(
    promtool: str, tmp_path: Path, driver: str, alert: str, given: dict[str, str]
) -> None:
    """Below its threshold, or where something else explains what it sees, a rule does not fire."""
    alert = f"Topolane{driver.capitalize()}{alert}"
    assert alert in FIRES[driver]
    at = PATIENT.get(alert, "110m" if alert in SLOW else "50m")
    run(promtool, tmp_path, driver, given, [firing(alert, at, 0)])
