"""How a cluster preempts jobs, for the queue `slurm`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from topolane import texts
from topolane._engine import InputError

BY = {"preempt/qos": "qos", "preempt/partition_prio": "partition"}
MODES = {"OFF": "off", "REQUEUE": "requeue", "CANCEL": "cancel"}
WORDS = {"youngest_first", "preempt_youngest_first"}
REORDER = re.compile(r"(?:preempt_)?reorder_count=(\d{1,6})", re.ASCII)
HARMLESS = re.compile(r"|suspend_grace_time=.*|send_user_signal|preempt_send_user_signal")


def of(settings: dict[str, str], path: Path, notes: list[str]) -> dict[str, Any]:
    """The value of the key `preemption`; empty if no job can be preempted. Raises InputError."""
    by, mode = settings.get("PreemptType", "(null)"), settings.get("PreemptMode", "OFF").upper()
    if by in ("(null)", "", "preempt/none") or mode == "OFF":
        return {}
    if by not in BY:
        notes.append(f"PreemptType {texts.shown(by)} is not known to the queue slurm: no job gives way")
        return {}
    if mode not in MODES:
        notes.append(
            f"PreemptMode {texts.shown(mode)} is not known to the queue slurm: "
            "no job gives way unless its QOS or partition has another mode"
        )
    found: dict[str, Any] = {"by": BY[by], "mode": MODES.get(mode, "off")}
    words = f"{settings.get('PreemptParameters', '')},{settings.get('SchedulerParameters', '')}".split(",")
    for word in map(str.strip, words):
        if word in WORDS:
            found["youngest_first"] = True
        elif count := REORDER.fullmatch(word):
            found["reorder"] = int(count[1])
    for word in settings.get("PreemptParameters", "").replace("(null)", "").split(","):
        if word not in WORDS and not REORDER.fullmatch(word) and not HARMLESS.fullmatch(word):
            notes.append(f"PreemptParameters has {texts.shown(word)}, which the queue slurm does not know")
    found["exempt"] = seconds(settings.get("PreemptExemptTime", "00:00:00"), "PreemptExemptTime", path) or 0
    waits = (
        settings.get(name, f"{default} sec") for name, default in (("KillWait", 30), ("MessageTimeout", 10))
    )
    found["again"] = sum(int(digits[0]) for text in waits if (digits := re.match(r"\d{1,9}", text)))
    return found


def mode(text: str, whose: str, notes: list[str]) -> str | None:
    """The preemption mode of a QOS or a partition; None for the cluster's mode."""
    if text.upper() in ("", "CLUSTER"):
        return None
    if text.upper() not in MODES:
        notes.append(
            f"{whose}: PreemptMode {texts.shown(text)} is not known to the queue slurm: its jobs do not give way"
        )
        return "off"
    return MODES[text.upper()]


def seconds(text: str, what: str, path: Path) -> int | None:
    """The seconds in a text like `1-00:00:00` or `00:05:00`; None if it is empty. Raises InputError."""
    if text in ("", "NONE", "INFINITE", "UNLIMITED", "-1"):
        return None
    parts = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6}):(\d\d):(\d\d)", text, re.ASCII)
    if parts is None:
        raise InputError(f"{path}: {what} {texts.shown(text)} is not a time like 7-00:00:00")
    days, hours, minutes, rest = (int(part or 0) for part in parts.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + rest
