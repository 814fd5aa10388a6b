"""The files of examples/kolla."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from placements import ours

pytest.importorskip("nova", reason="the extra nova-test is not installed")

FILE = Path(__file__).parents[2] / "examples" / "kolla" / "nova-scheduler.conf"
READS = """
import json, sys
import nova.conf
from topolane.nova import config
nova.conf.CONF([], project="nova", default_config_files=[sys.argv[1]], default_config_dirs=[])
config.register(nova.conf.CONF)
print(json.dumps([dict(nova.conf.CONF.filter_scheduler), nova.conf.CONF.topolane.default_placement]))
"""


def test_nova_reads_the_settings_of_the_guide_from_the_file_for_kolla() -> None:
    """All of them, also the one that is written twice."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READS, FILE], check=True, capture_output=True, text=True
    )
    scheduler, default_placement = json.loads(done.stdout)
    wanted = ours()["filter_scheduler"]
    assert {key: scheduler[key] for key in wanted} == wanted
    assert default_placement == "none"
