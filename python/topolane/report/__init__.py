"""Figures and the self-contained page that `simulate` and `compare` write.

    write_report(directory, runs, picture, at=None, png=False) -> Path of report.html

Matplotlib and Jinja2 are imported when a report is written, not before: most commands draw nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .data import MachinePicture, ReportedRun, Subtree

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from pathlib import Path

    from topolane.baseline import Baseline
    from topolane.verdict import Verdict

__all__ = ["MachinePicture", "ReportedRun", "Subtree", "write_report"]


def write_report(
    directory: str | os.PathLike[str],
    runs: Sequence[ReportedRun],
    picture: MachinePicture,
    *,
    at: float | None = None,
    png: bool = False,
    sentence: str = "",
    baseline: Baseline | None = None,
    verdict: Verdict | None = None,
) -> Path:
    """Write `report.html` and `figures/*.svg` into `directory`, and with `png` also `figures/*.png`; return
    the page's path.

    `at` is the moment at which the tree is drawn, in seconds since the workload's epoch; by default the
    busiest minute of each run. `verdict` begins the page, `sentence` follows it; `baseline` gets a section.
    Everything is drawn before anything in `directory` changes.
    """
    from .write import write

    return write(directory, runs, picture, at, png, sentence, baseline, verdict)
