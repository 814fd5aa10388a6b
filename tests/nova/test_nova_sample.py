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


def test_the_sample_is_read_by_oslo_config() -> None:
    """And asks for our filter, last, and our weigher."""
    cfg = pytest.importorskip(
        "oslo_config.cfg", reason="oslo.config is missing: it comes with the extra nova-test"
    )
    conf = cfg.ConfigOpts()
    options = [
        cfg.ListOpt("enabled_filters"),
        cfg.MultiStrOpt("weight_classes"),
        cfg.MultiStrOpt("available_filters"),
    ]
    conf.register_opts(options, group="filter_scheduler")
    conf([], project="nova", default_config_files=[str(SAMPLE)])
    assert conf.filter_scheduler.enabled_filters[-1] == "TopolaneFilter"
    assert conf.filter_scheduler.weight_classes[-1] == "topolane.nova.weigher.TopolaneWeigher"
    assert conf.filter_scheduler.available_filters[-1] == "topolane.nova.filter.TopolaneFilter"
