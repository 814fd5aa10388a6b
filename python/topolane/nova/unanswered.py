"""The error for a group that must be isolated and cannot be decided."""

from __future__ import annotations


class Unanswered(Exception):
    """Topolane lacks information that it needs to promise isolation."""

    def __init__(self, reason: str, detail: str = "") -> None:
        """reason: a clause that users of the cloud may read. detail: text for the log only."""
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
