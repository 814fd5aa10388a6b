"""What the tests of the sites and of Slurm start: guests, libvirt daemons, a cluster."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / part) for part in ("sites", "slurm")]
