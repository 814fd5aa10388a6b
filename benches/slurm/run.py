"""Measures the plugin inside a real slurmctld on this machine: `make bench-slurm BENCH="scale"`, `soak` or `cab`; `block` holds
a policy against a slurmctld without it, and `room` makes room on a full machine.

`python benches/slurm/run.py scale|soak|cab|block|room [OPTION]...`, as root on Debian with mmdebstrap and the packages that
`tests/slurm/cluster.sh check` wants, with the interpreter in which Topolane is installed. `--help` after the name lists the
options. docs/benchmarks/slurm.md says what is measured. The exit code is 1 if a target was missed or something was given
twice, and 2 for wrong options or a missing component.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), *(str(HERE.parents[1] / "tests" / part) for part in ("slurm", ""))]

import block
import cab
import room
import scale
import slurm_sites
import soak
from topolane import InputError

BENCHES = {"block": block, "scale": scale, "soak": soak, "cab": cab, "room": room}


def main(words: list[str]) -> int:
    """Runs the bench of that name."""
    if not words or words[0] not in BENCHES:
        wanted = (
            f"there is no bench '{words[0]}'"
            if words and words[0] not in ("-h", "--help")
            else __doc__.strip()
        )
        print(f"{wanted}\n\nname one of: {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    bench = BENCHES[words[0]]
    options = bench.arguments(words[1:])
    try:
        slurm_sites.Shape.of(options.nodes)
        slurm_sites.enter()
        if missing := slurm_sites.missing():
            raise RuntimeError(missing)
        slurm_sites.ended_by_signals()
        return int(bench.measure(options))
    except (InputError, RuntimeError, ValueError, OSError, subprocess.TimeoutExpired) as error:
        print(f"{words[0]}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
