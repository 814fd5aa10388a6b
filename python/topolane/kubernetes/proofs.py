"""What topolane-scheduler wrote on pods, as far as it is proved.

Whoever may change a pod may change its annotations. The scheduler signs what it writes (native/kubernetes/plugin/proof.go), and
only that counts. docs/explanation/kubernetes.md says why.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import dataclasses
import hashlib
import hmac
from collections.abc import Sequence

from topolane import texts
from topolane._engine import InputError
from topolane.cluster import decided
from topolane.cluster.decided import Decided
from topolane.kubernetes.client import KubernetesCluster
from topolane.kubernetes.objects import LONGEST_NOTES, PLACEMENT, Pod

PROOF = "topolane.io/placement-proof"
STARTS, EARLIER = "topolane.io/placement/v2", "topolane.io/placement/v1"
"""What begins that which is signed, now and by earlier releases."""
MEMBER = "key"
KEY_BYTES = 32
LONGEST_PROOF = 1024
SEEN = 4096
"""How many placements stay read."""


def seal(key: bytes, group: str, pod: str, text: str, starts: str = STARTS) -> str:
    """The checksum of a placement of one pod of a group. group: its key; pod: the UID."""
    said = f"{starts}\0{group}\0{pod}\0{text}"
    return hmac.new(key, said.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


@dataclasses.dataclass(frozen=True)
class Proofs:
    """The key that proves placements; without it none is proved."""

    key: bytes | None = None
    why: str | None = None
    """Why there is no key: a sentence."""
    _read: dict[tuple[str, str, str], Decided | None] = dataclasses.field(
        default_factory=dict, repr=False, compare=False
    )

    def group(self, pod: Pod) -> str | None:
        """The key of the group that the scheduler bound a pod for; None if nothing proves that it did."""
        note, proof = pod.notes.get(PLACEMENT, ""), pod.notes.get(PROOF, "")
        if self.key is None or not note or len(note) > LONGEST_NOTES or not 0 < len(proof) <= LONGEST_PROOF:
            return None
        group, _, said = proof.partition(" ")
        if not group.startswith(f"{pod.namespace}/") or not said.isascii():
            return None
        seals = [seal(self.key, group, pod.uid, note, starts) for starts in (STARTS, EARLIER)]
        return group if any(hmac.compare_digest(said, each) for each in seals) else None

    def bound(self, pods: Sequence[Pod]) -> tuple[Pod, ...]:
        """The same pods, in the groups that they were bound for, whatever their labels say since."""
        return tuple(self._bound(pod) for pod in pods)

    def _bound(self, pod: Pod) -> Pod:
        key = self.group(pod) if pod.node else None
        if key is None or (pod.key == key and pod.is_grouped):
            return pod
        return dataclasses.replace(pod, key=key, group=key.partition("#")[0], is_grouped=True)

    def placement(self, pod: Pod) -> Decided | None:
        """What the scheduler wrote on a pod that it bound; None if it has nothing that is proved."""
        note = pod.notes.get(PLACEMENT, "")
        which = (pod.uid, note, pod.notes.get(PROOF, ""))
        if not note or which in self._read:
            return self._read.get(which)
        found = None
        if pod.node and self.group(pod) is not None:
            with contextlib.suppress(ValueError):
                said = decided.read(note, LONGEST_NOTES)
                found = said if said.nodes[said.rank : said.rank + 1] == (pod.node,) else None
        if len(self._read) >= SEEN:
            self._read.clear()
        self._read[which] = found
        return found


def proofs(cluster: KubernetesCluster, places: Sequence[str]) -> Proofs:
    """The key in the first of these Secrets, NAMESPACE/NAME, that is there, if the user may read it."""
    found = Proofs()
    for place in places:
        last = _proofs(cluster, place)
        if last.key is not None:
            return last
        found = found if found.why else last
    return found


def _proofs(cluster: KubernetesCluster, place: str) -> Proofs:
    space, _, name = place.partition("/")
    try:
        data = cluster.get(f"/api/v1/namespaces/{space}/secrets/{name}").get("data") or {}
        key = base64.b64decode(data.get(MEMBER) or "", validate=True)
    except InputError as error:
        return Proofs(None, f"Secret {place} cannot be read: {texts.sentence(str(error))}")
    except (binascii.Error, ValueError, AttributeError, TypeError):
        key = b""
    if len(key) < KEY_BYTES:
        return Proofs(None, f"Secret {place} holds no key")
    return Proofs(key)
