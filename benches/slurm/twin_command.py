"""The command line of the Topolane in this interpreter, as the benches of the twin run it."""

from __future__ import annotations

import sys
from pathlib import Path

from measure import Cost, cost


def topolane(*words: str | Path) -> Cost:
    """What a command took and printed. Raises BenchError if it fails."""
    call = "import sys; from topolane.cli import main; sys.exit(main())"
    return cost([sys.executable, "-c", call, *words])
