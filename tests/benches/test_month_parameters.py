"""The parameters of `gpu-month` are those that the script fits to the traces."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACES = ROOT.parent / "shared" / "traces"
TABLES = ROOT / "crates" / "simulator" / "src" / "workload" / "synthetic" / "gpu_month" / "tables.rs"


def tokens(source: str) -> str:
    """Rust as the formatter cannot change it: no white space and no comma before a bracket."""
    return re.sub(r"\s|,(?=\s*[\]})])", "", source)


@pytest.mark.skipif(not TRACES.is_dir(), reason="the traces are not in ../shared/traces")
def test_the_tables_are_what_the_script_prints():
    script = ROOT / "benches" / "gpu" / "month_parameters.py"
    printed = subprocess.run(
        [sys.executable, script, TRACES], check=True, capture_output=True, text=True
    ).stdout
    assert tokens(printed) == tokens(TABLES.read_text())
