"""The broker module that `flux module load` takes: `topolane flux module` prints where it is."""

import sys
import syslog
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    # Topolane may be installed beside Flux's Python; what Flux's own Python has goes first.
    sys.path.append(ROOT)


def mod_main(handle: Any, *words: str) -> None:
    """Runs the scheduler until the module is unloaded."""
    try:
        try:
            from topolane.flux.scheduler import TopolaneScheduler
        except ImportError as error:
            raise ValueError(f"Topolane cannot be loaded by {sys.executable}: {error}") from error
        scheduler = TopolaneScheduler(handle, *words)
    except ValueError as error:
        # Flux prints it where the broker's output goes, and tells the caller no more than "Invalid argument".
        handle.log(syslog.LOG_ERR, str(error))
        raise
    scheduler.run()
