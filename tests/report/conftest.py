"""Let these tests run where the package is not installed: the report needs no engine."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("topolane") is None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "python"))
