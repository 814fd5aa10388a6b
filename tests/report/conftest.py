"""Let these tests run where the engine is not built: the report reads tables, and needs none."""

from __future__ import annotations

import sys
import types
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "python" / "topolane"

try:
    import topolane.report  # noqa: F401
except ImportError:
    bare = types.ModuleType("topolane")
    bare.__path__ = [str(PACKAGE)]
    sys.modules["topolane"] = bare
