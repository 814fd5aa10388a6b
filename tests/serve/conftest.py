"""What the tests of the page share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """The address of a page that shows a small replay whose clock stands."""
    pytest.importorskip("fastapi", reason="the extra serve is not installed")
    from served import SMALL, served
    from topolane.serve.api import PAGE

    if not (PAGE / "index.html").is_file():
        pytest.skip("the page is not built: make page")
    with served(*SMALL) as address:
        yield address
