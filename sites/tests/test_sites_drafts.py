"""Files of guests that are written: no planted draft leads elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("psutil", reason="topolane-sites is not installed with what it needs")
from topolane_sites.qemu import QemuFolder, QemuMachine


def test_a_planted_draft_of_a_guest_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who plants the draft of a guest's file cannot have another file written by its host."""
    folder, victim = tmp_path / "guests", tmp_path / "file"
    folder.mkdir()
    victim.write_text("precious")
    (folder / "one.json.new").symlink_to(victim)
    monkeypatch.setattr("topolane_sites.qemu.BINARY", "true")
    QemuFolder(folder).start(QemuMachine("one", ()))
    assert victim.read_text() == "precious"
    assert json.loads((folder / "one.json").read_text())["name"] == "one"
