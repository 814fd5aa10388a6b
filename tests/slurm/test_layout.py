"""A plugin that was compiled with the headers of another package of the same release."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from live_cluster import Inside
from plugin_site import RULES, Site, plugin_cluster
from topolane.slurm import plugin_build
from waiting import until


def with_other_record(source: Path, directory: Path) -> Path:
    """The source of a Slurm, but for one more field in the record of a job, as in a package with a patch."""
    header = Path("src/common/job_record.h")
    for path in (Path(), Path("src"), Path("src/common")):
        (directory / path).mkdir(parents=True, exist_ok=True)
        for entry in os.listdir(source / path):
            other = path / entry
            if other not in (Path("src"), Path("src/common"), header):
                (directory / other).symlink_to(source / other)
    text, changed = re.subn(
        r"(\n\s*uint64_t bit_flags;[^\n]*)", r"\1 double patched;", (source / header).read_text()
    )
    assert changed == 1
    (directory / header).write_text(text)
    return directory


def test_records_of_another_layout_leave_everything_to_stock(
    source: Path, engine: Path, inside: Inside, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Slurm loads such a plugin, because the number of the release is the same. It reads no field of a job: jobs run where stock
    Slurm puts them, slurmctld lives on, and the reason is published.
    """
    elsewhere = tmp_path_factory.mktemp("patched")
    built = elsewhere / "built"
    plugin_build.build(with_other_record(source, elsewhere / "source"), engine, "cc", built)
    partitions = ("--partitions", "pbatch pshared:ALL:NO powned ptree")
    directory = tmp_path_factory.mktemp("layout")
    with plugin_cluster(built, inside, directory, *partitions, rules=RULES) as cluster:
        site = Site(cluster, built)
        site.start("-p", "pbatch", "-N3")
        site.start("-p", "powned", "-N2")
        assert site.running(), "slurmctld answers"
        until(lambda: site.published().why is not None, "the reason is published")
        assert "records differ from the headers" in str(site.published().why)
        counted = site.counters()
        assert counted["active"] == 0 and counted["stock_inactive"] == counted["calls"] > 0
