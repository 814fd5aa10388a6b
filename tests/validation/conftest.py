"""The other simulators, as the benchmarks of `validation` use them; tests without theirs are skipped by name."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

VALIDATION = Path(__file__).resolve().parents[2] / "benches" / "validation"
sys.path.insert(0, str(VALIDATION))

from components import Missing, Programs


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Programs]:
    """Gives the programs when those named are compiled, and skips the test when they cannot be."""
    programs = Programs(tmp_path_factory.mktemp("programs"))

    def ready(*names: str) -> Programs:
        for name in names:
            try:
                getattr(programs, name)()
            except Missing as absent:
                pytest.skip(str(absent))
        return programs

    return ready
