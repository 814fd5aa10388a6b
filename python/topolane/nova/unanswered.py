"""What is raised where a group that must be isolated cannot be decided."""

from __future__ import annotations


class Unanswered(Exception):
    """Something is not known without which no isolation can be promised."""

    def __init__(self, reason: str, detail: str = "") -> None:
        """reason: a clause that users of the cloud may read. detail: for the log."""
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
