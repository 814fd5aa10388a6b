"""Clusters that are being changed: `sites up` and `sites down` hold a cluster, and none of its guests is moved then."""

from __future__ import annotations

import time

from topolane_sites.state import ManagerDatabase


class Holds:
    """The holder of each cluster that is being changed. A hold ends by itself, so that a killed command leaves none.

    Holds are stored, so a manager that is started again knows them.
    """

    def __init__(self, state: ManagerDatabase) -> None:
        self._state = state
        self._of: dict[str, tuple[str, float]] = {
            name: (owner, until) for name, (owner, until) in state.get("hold").items()
        }

    def holder(self, cluster: str) -> str | None:
        """Who holds the cluster now."""
        owner, until = self._of.get(cluster, ("", 0.0))
        return owner if until > time.time() else None

    def held(self) -> set[str]:
        """The clusters that are held now."""
        return {name for name in self._of if self.holder(name) is not None}

    def take(self, cluster: str, owner: str, seconds: float) -> bool:
        """Holds a cluster for so long, or longer if the owner has it already; returns whether it could."""
        if self.holder(cluster) not in (None, owner):
            return False
        self._of[cluster] = (owner, time.time() + seconds)
        self._state.put("hold", cluster, self._of[cluster])
        return True

    def free(self, cluster: str, owner: str) -> None:
        """Ends the owner's hold, if there is one."""
        if self.holder(cluster) in (None, owner) and self._of.pop(cluster, None) is not None:
            self._state.drop("hold", cluster)
