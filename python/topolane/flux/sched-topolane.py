"""The scheduler of a Flux instance. `topolane flux module` prints the path of this file.

`flux module load FILE ARGS` runs it as a module of the broker; `flux python FILE ARGS` runs it as a process
that may end and start again.
"""

import sys
import syslog
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    # If Topolane is installed outside Flux's Python, packages of Flux's own Python come first.
    sys.path.append(ROOT)


def scheduler_of(handle: Any, words: tuple[str, ...], *, process: bool) -> Any:
    """Creates the scheduler from its arguments. Raises ValueError with one sentence about a wrong argument."""
    try:
        from topolane.flux.version import check_version

        check_version(str(handle.attr_get("version")))
        from topolane.flux.scheduler import SchedulerProcess, TopolaneScheduler
    except ImportError as error:
        raise ValueError(f"Topolane cannot be loaded by {sys.executable}: {error}") from error
    return SchedulerProcess(handle, *words) if process else TopolaneScheduler(handle, *words)


def mod_main(handle: Any, *words: str) -> None:
    """Runs the scheduler until the module is unloaded."""
    try:
        scheduler = scheduler_of(handle, words, process=False)
    except ValueError as error:
        # Flux prints this with the broker's output; the caller only gets "Invalid argument".
        handle.log(syslog.LOG_ERR, str(error))
        raise
    scheduler.run()


def main() -> None:
    """Runs the scheduler until the instance or this process is ended."""
    import flux

    try:
        scheduler_of(flux.Flux(), tuple(sys.argv[1:]), process=True).run()
    except ValueError as error:
        print(f"topolane: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        print(f"topolane: the scheduler has ended: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
