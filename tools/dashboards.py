"""Writes the Grafana dashboards of all drivers: FOLDER/DRIVER.json.

In a query, `<name labels>` stands for a metric of the driver for the selected instances.
"""

from __future__ import annotations

import json
import pathlib
import re
import sys
from typing import Any

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
"""The number of columns in Grafana's grid."""

Panel = dict[str, Any]


def stat(title: str, query: str, words: str = "", *, red: str | None = None, unit: str = "short") -> Panel:
    """A panel with a single number. red: "0" if 0 is bad, "1" if 1 and more are bad, or the number from which
    values are bad.
    """
    defaults: dict[str, Any] = {"unit": unit}
    if red is not None:
        good_first = red != "0"
        steps = [{"color": "green" if good_first else "red", "value": None}]
        steps.append({"color": "red", "value": float(red)} if good_first else {"color": "green", "value": 1})
        defaults["thresholds"] = {"mode": "absolute", "steps": steps}
    return {
        "type": "stat",
        "height": 4,
        "title": title,
        "description": words,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": {
            "reduceOptions": {"calcs": ["lastNotNull"]},
            "colorMode": "value" if red is None else "background",
            "graphMode": "none",
        },
        "queries": {"{{instance}}": query},
    }


def lines(
    title: str,
    queries: dict[str, str],
    words: str = "",
    *,
    unit: str = "short",
    stacked: bool = False,
    log: bool = False,
) -> Panel:
    """A panel with lines over time. queries: one query per legend."""
    custom: dict[str, Any] = {"fillOpacity": 40 if stacked else 0}
    if stacked:
        custom["stacking"] = {"mode": "normal"}
    if log:
        custom["scaleDistribution"] = {"type": "log", "log": 10}
    return {
        "type": "timeseries",
        "height": 8,
        "title": title,
        "description": words,
        "fieldConfig": {"defaults": {"unit": unit, "custom": custom}, "overrides": []},
        "options": {
            "legend": {"displayMode": "list", "placement": "bottom"},
            "tooltip": {"mode": "multi"},
        },
        "queries": queries,
    }


def quantile(share: float, histogram: str) -> str:
    """The query for a quantile of a histogram over the recent past."""
    return f"histogram_quantile({share}, sum by (le) (rate(<{histogram}_bucket>[$__rate_interval])))"


DASHBOARDS: dict[str, tuple[str, str, list[list[Panel]]]] = {
    "slurm": (
        "Topolane in Slurm",
        "up",
        [
            [
                stat("slurmctld answers", "<up>", red="0"),
                stat(
                    "engine decides",
                    "<active> * <deciding>",
                    "Red: the plugin is not active, or its engine does not decide.",
                    red="0",
                ),
                stat("state stale", "<stale>", "Red: the plugin writes nothing though jobs wait.", red="1"),
                stat(
                    "isolated jobs that share links",
                    "<isolated_jobs_sharing_links>",
                    "0 unless something is wrong.",
                    red="1",
                ),
                stat(
                    "state written",
                    "<state_age_seconds>",
                    "Since the plugin wrote its state.",
                    red="60",
                    unit="s",
                ),
                stat("what cannot be read", "<problems>", "`topolane slurm status` names it.", red="1"),
            ],
            [
                lines(
                    "how calls ended",
                    {"{{end}}": "sum by (end) (rate(<calls_total>[$__rate_interval]))"},
                    "Calls of the plugin a second, by how they ended. stock...: stock Slurm decided.",
                    unit="cps",
                    stacked=True,
                ),
                lines(
                    "time of a call",
                    {
                        "median": quantile(0.5, "call_seconds"),
                        "99 %": quantile(0.99, "call_seconds"),
                        "longest since start": "max(<longest_call_seconds>)",
                        "CallTime": "max(<call_limit_seconds>)",
                    },
                    "The plugin's own time, without the stock evaluation.",
                    unit="s",
                    log=True,
                ),
            ],
            [
                lines("jobs", {"{{state}} {{policy}}": "sum by (state, policy) (<jobs>)"}, stacked=True),
                lines("nodes", {"{{state}}": "sum by (state) (<nodes>)"}, stacked=True),
            ],
            [
                lines(
                    "jobs that the plugin refused",
                    {"{{kind}}": "sum by (kind) (<refused_jobs>)"},
                    "Waiting jobs by kind of refusal: `topolane slurm explain JOB` says more.",
                    stacked=True,
                ),
                lines(
                    "longest wait of a refused job",
                    {"{{kind}}": "max by (kind) (<refused_wait_seconds>)"},
                    unit="s",
                ),
                lines(
                    "links",
                    {
                        "owned by one job": "max(<links_owned>)",
                        "may carry two jobs": "max(<links_shared>)",
                        "file not written": "increase(<links_unwritten_total>[$__rate_interval])",
                    },
                ),
            ],
            [
                lines(
                    "how many more jobs fit",
                    {"{{size}} in one {{level}}": "max by (level, size) (<room_jobs>)"},
                    "Jobs of a size inside one group of a level, each alone with the rest.",
                ),
                lines(
                    "links that no new job may own",
                    {"{{kind}}": "max by (kind) (<links_out>)"},
                    "As set by `topolane slurm outages`.",
                ),
            ],
            [
                lines("GPUs", {"all": "max(<gpus>)", "free": "max(<gpus_free>)"}),
                lines(
                    "stranded GPUs",
                    {"{{reason}}": "max by (reason) (<gpus_stranded>)"},
                    "Free GPUs that no job can use, by what is missing.",
                    stacked=True,
                ),
                stat(
                    "loaded since",
                    "<start_time_seconds> * 1000",
                    "Counters restart at zero when slurmctld starts.",
                    unit="dateTimeFromNow",
                ),
            ],
        ],
    ),
    "kubernetes": (
        "Topolane in Kubernetes",
        "call_limit_seconds",
        [
            [
                stat("groups that run", 'max(sum by (instance) (<jobs state="running">))'),
                stat("groups that wait", 'max(sum by (instance) (<jobs state="waiting">))'),
                stat("GPUs free", "max(<gpus_free>)", "GPUs in service that no pod holds."),
                stat(
                    "failures of the plugin",
                    "sum(increase(<failures_total>[$__range]))",
                    "Panics that were caught; the pods were left to kube-scheduler.",
                    red="1",
                ),
            ],
            [
                lines(
                    "how calls ended",
                    {"{{end}}": "sum by (end) (rate(<calls_total>[$__rate_interval]))"},
                    "Decisions about groups a second, by how they ended. stock...: kube-scheduler chose; wait...: the engine could not answer.",
                    unit="cps",
                    stacked=True,
                ),
                lines(
                    "time of a decision",
                    {
                        "engine, median": quantile(0.5, "call_seconds"),
                        "engine, 99 %": quantile(0.99, "call_seconds"),
                        "with filters, 99 %": quantile(0.99, "decision_seconds"),
                        "callTimeMilliseconds": "max(<call_limit_seconds>)",
                    },
                    "The engine alone, and with the filters of kube-scheduler on all nodes.",
                    unit="s",
                    log=True,
                ),
            ],
            [
                lines("groups", {"{{state}} {{policy}}": "max by (state, policy) (<jobs>)"}, stacked=True),
                lines("groups that the policy refused", {"{{kind}}": "max by (kind) (<refused_jobs>)"}),
                lines(
                    "longest wait of a refused group",
                    {"{{kind}}": "max by (kind) (<refused_wait_seconds>)"},
                    unit="s",
                ),
            ],
            [
                lines("nodes", {"{{state}}": "max by (state) (<nodes>)"}, stacked=True),
                lines(
                    "how many more groups fit",
                    {"{{size}} in one {{level}}": "max by (level, size) (<room_jobs>)"},
                    "Groups of a size, in idle nodes, inside one domain of a level, each alone with the rest.",
                ),
                lines(
                    "links",
                    {"owned": "max(<links_owned>)", "groups not proved": "max(<jobs_not_proved>)"},
                    "Links between switches that one group has for itself, and groups that nothing proves.",
                ),
            ],
            [
                lines(
                    "busy nodes of each domain",
                    {"{{level}} {{domain}}": 'max by (level, domain) (<domain_nodes state="busy">)'},
                ),
                lines(
                    "groups preempted",
                    {"{{reason}}": "sum by (reason) (increase(<preemptions_total>[$__rate_interval]))"},
                    "Groups evicted whole, by what was taken: room or links for a group, or room for a single pod.",
                ),
                lines("GPUs", {"all": "max(<gpus>)", "free": "max(<gpus_free>)"}),
            ],
        ],
    ),
    "nova": (
        "Topolane in Nova",
        "up",
        [
            [
                stat("Nova answers", "<up>", red="0"),
                stat(
                    "what is wrong with the topology",
                    "<problems>",
                    "`topolane nova status` says it.",
                    red="1",
                ),
                stat(
                    "isolated groups that share links",
                    "<isolated_jobs_sharing_links>",
                    "0 unless something is wrong.",
                    red="1",
                ),
                stat("hosts that no leaf lists", "<nodes_off_tree>", red="1"),
                stat("refusals known", "<refusals_known>", "Red: the API database cannot be read.", red="0"),
            ],
            [
                lines("compute hosts", {"{{state}}": "sum by (state) (<nodes>)"}, stacked=True),
                lines(
                    "server groups", {"{{state}} {{policy}}": "sum by (state, policy) (<jobs>)"}, stacked=True
                ),
            ],
            [
                lines(
                    "groups above the least hops",
                    {"{{policy}}": "sum by (policy) (<jobs_above_least>)"},
                    "`topolane nova plan` says which migrations bring them together. Groups that ask for spread are above on "
                    "purpose.",
                ),
                lines(
                    "hops above the least",
                    {"{{policy}}": "sum by (policy) (<hops_above_least>)"},
                ),
                lines("links that groups may share", {"{{instance}}": "<links_shared>"}),
                lines(
                    "requests refused",
                    {"{{kind}}": "sum by (kind) (increase(<refusals_total>[$__rate_interval]))"},
                    "Requests that Topolane's filter refused, over all schedulers.",
                ),
            ],
        ],
    ),
    "sites": (
        "Topolane between sites",
        "paused",
        [
            [
                stat("programs", "<programs>"),
                stat("ranks connected", "<ranks>"),
                stat("planning paused", "<paused>", "`POST /resume` ends it.", red="1"),
                stat(
                    "silent hosts",
                    'sum by (instance) (<nodes state="out_of_service">)',
                    "Hosts that no longer report.",
                    red="1",
                ),
                stat(
                    "newest plan",
                    "<plan_age_seconds>",
                    "Since it was made.",
                    unit="s",
                ),
                stat("guests lost", '<moves state="lost">', "`GET /moves` names them.", red="1"),
            ],
            [
                lines(
                    "loss by the WAN",
                    {"{{program}}": "max by (program) (<program_loss_ratio>)"},
                    "Seconds that a second of a program takes longer.",
                    unit="percentunit",
                ),
                lines("moves", {"{{state}}": "max by (state) (<moves>)"}, "Of the newest 1,000."),
            ],
            [
                lines("busy cores", {"{{site}}": 'sum by (site) (<cores state="busy">)'}, stacked=True),
                lines("idle cores", {"{{site}}": 'sum by (site) (<cores state="idle">)'}, stacked=True),
                lines("hosts", {"{{site}} {{state}}": "sum by (site, state) (<nodes>)"}, stacked=True),
            ],
            [
                lines(
                    "frames a second",
                    {
                        "all": "sum(rate(<frames_total>[$__rate_interval]))",
                        "repeated": "sum(rate(<frames_repeated_total>[$__rate_interval]))",
                    },
                    "What ranks report of their messages. A frame is repeated after a connection was lost.",
                    unit="cps",
                ),
                lines(
                    "planning",
                    {"seconds": "max(<plan_seconds>)", "moves wanted": "max(<plan_moves>)"},
                    "Time and moves of the newest plan.",
                ),
            ],
        ],
    ),
    "gang": (
        "Gangs",
        "up",
        [
            [
                stat("agent answers", "<up>", red="0"),
                stat(
                    "what the agent lacks",
                    "<problems>",
                    "`topolane gang run` prints it when it starts.",
                    red="1",
                ),
                stat("cores", "<cores>"),
                stat("slices of a round", "<slices>"),
                stat("jobs lost", '<jobs state="lost">', "They run without the agent.", red="1"),
            ],
            [
                lines("jobs", {"{{state}}": "sum by (state) (<jobs>)"}, stacked=True),
                lines(
                    "cores in use by job",
                    {"{{number}}": "sum by (number) (rate(<job_cpu_seconds_total>[$__rate_interval]))"},
                    stacked=True,
                ),
            ],
            [
                lines(
                    "ready without a core in its own slice",
                    {
                        "{{number}}": 'sum by (number) (rate(<job_slice_seconds_total state="ready">[$__rate_interval])) / '
                        "sum by (number) (rate(<job_slice_seconds_total>[$__rate_interval]))"
                    },
                    "0 if all threads of the gang run at once.",
                    unit="percentunit",
                ),
                lines(
                    "blocked in its own slice",
                    {
                        "{{number}}": 'sum by (number) (rate(<job_slice_seconds_total state="blocked">[$__rate_interval])) / '
                        "sum by (number) (rate(<job_slice_seconds_total>[$__rate_interval]))"
                    },
                    "Cores that others could have used.",
                    unit="percentunit",
                ),
                lines(
                    "from barrier to barrier",
                    {"{{number}}": "max by (number) (<job_barrier_seconds>)"},
                    unit="s",
                    log=True,
                ),
            ],
        ],
    ),
    "serve": (
        "The live page of Topolane",
        "up",
        [
            [
                stat("source answers", "<up>", red="0"),
                stat("what cannot be read", "<problems>", "The page names it.", red="1"),
                stat("last look", "<look_age_seconds>", "Since the source answered.", red="60", unit="s"),
                stat("links owned", "<links_owned>"),
            ],
            [
                lines("jobs", {"{{state}}": "sum by (state) (<jobs>)"}),
                lines("nodes", {"{{state}}": "sum by (state) (<nodes>)"}, stacked=True),
                lines(
                    "viewers",
                    {"viewers": "sum(<viewers>)", "--viewers": "sum(<viewers_limit>)"},
                ),
            ],
        ],
    ),
}
"""For each driver: the title, a metric that every instance has, and rows of panels."""


def dashboard(driver: str) -> str:
    """The dashboard of a driver, in the form that Grafana imports."""
    title, always, rows = DASHBOARDS[driver]
    panels: list[Panel] = []
    top = 0
    for row in rows:
        width = WIDTH // len(row)
        for column, panel in enumerate(row):
            at = {"x": column * width, "y": top, "w": width, "h": panel["height"]}
            panels.append(_placed(panel, len(panels) + 1, at, driver))
        top += max(panel["height"] for panel in row)
    chosen = {
        "name": "instance",
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f"label_values(topolane_{driver}_{always}, instance)", "refId": "instances"},
        "includeAll": True,
        "multi": True,
        "refresh": 2,
        "current": {"text": "All", "value": "$__all"},
    }
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    made = {
        "title": title,
        "uid": f"topolane-{driver}",
        "tags": ["topolane", driver],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source, chosen]},
        "panels": panels,
    }
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def _placed(panel: Panel, number: int, at: dict[str, int], driver: str) -> Panel:
    queries = [
        {"refId": chr(ord("A") + index), "expr": _expression(query, driver), "legendFormat": legend}
        for index, (legend, query) in enumerate(panel["queries"].items())
    ]
    rest = {key: value for key, value in panel.items() if key not in ("height", "queries")}
    return {"id": number, "gridPos": at, "datasource": SOURCE, **rest, "targets": queries}


def _expression(query: str, driver: str) -> str:
    def metric(found: re.Match[str]) -> str:
        labels = ",".join(filter(None, [(found[2] or "").strip(), 'instance=~"$instance"']))
        return f"topolane_{driver}_{found[1]}{{{labels}}}"

    return re.sub(r"<(\w+)( [^>]*)?>", metric, query)


def main(folder: pathlib.Path) -> None:
    """Writes all dashboards."""
    folder.mkdir(parents=True, exist_ok=True)
    for driver in DASHBOARDS:
        (folder / f"{driver}.json").write_text(dashboard(driver), "utf-8")
        print(folder / f"{driver}.json")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
