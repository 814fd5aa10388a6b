"""`topolane calibrate` in a directory of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from clusters import Calibrate


@pytest.fixture
def calibrate(tmp_path: Path) -> Calibrate:
    return Calibrate(tmp_path)
