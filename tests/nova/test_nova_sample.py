"""The sample nova.conf."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

SAMPLE = Path(__file__).parents[2] / "examples" / "nova.conf"
GENERATOR = Path(sysconfig.get_path("scripts"), "oslo-config-generator")


def test_the_sample_has_every_option_as_it_is() -> None:
    """From [topolane] on it is what oslo.config prints of the installed package."""
    if not GENERATOR.exists():
        pytest.skip(f"{GENERATOR} is missing: it comes with the extra nova-test")
    command = [GENERATOR, "--namespace", "topolane.nova"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    start = "[topolane]"
    assert start in printed, "the entry point oslo.config.opts is installed"
    assert SAMPLE.read_text().partition(start)[2].strip() == printed.partition(start)[2].strip()


def test_the_sample_is_read_as_nova_reads_it() -> None:
    """With the types that Nova gives its options: our filter is last, and our weigher is used in addition to Nova's own."""
    reason = "Nova is missing: it comes with the extra nova-test"
    cfg = pytest.importorskip("oslo_config.cfg", reason=reason)
    scheduler = pytest.importorskip("nova.conf.scheduler", reason=reason)
    conf = cfg.ConfigOpts()
    scheduler.register_opts(conf)
    conf([], project="nova", default_config_files=[str(SAMPLE)])
    options = conf.filter_scheduler
    assert options.enabled_filters[-1] == "TopolaneFilter"
    assert options.weight_classes == [
        "nova.scheduler.weights.all_weighers",
        "topolane.nova.weigher.TopolaneWeigher",
    ]
    assert options.available_filters == [
        "nova.scheduler.filters.all_filters",
        "topolane.nova.filter.TopolaneFilter",
    ]


def test_the_page_shows_the_sample_s_lines() -> None:
    """What docs/guides/nova.md says to write into [filter_scheduler] is what the sample has."""
    page = (SAMPLE.parents[1] / "docs" / "guides" / "nova.md").read_text()
    section = SAMPLE.read_text().partition("[filter_scheduler]")[2].partition("[topolane]")[0]
    for line in filter(None, section.splitlines()):
        assert line.startswith("#") or line in page
