"""What the scheduler assumes about volumes while its writes are under way (spec 05 §4.9).

An assumption lasts until it is taken back, or until the object changes: then the API server has spoken.
"""

from __future__ import annotations

from vcscheduler.model.listers import Listers
from vcscheduler.objects import PersistentVolume, PersistentVolumeClaim
from vcscheduler.plugins.predicates.claims import SELECTED_NODE

_KEY = "predicates.assumptions"


class Assumptions:
    """``bind_timeout_seconds``: how long a bind waits for its volumes. Quirk: the first session's argument holds for
    the life of the scheduler."""

    def __init__(self, bind_timeout_seconds: int) -> None:
        self.bind_timeout_seconds = bind_timeout_seconds
        self._volumes: dict[str, tuple[PersistentVolume, str]] = {}
        self._claims: dict[str, tuple[PersistentVolumeClaim, str]] = {}

    @classmethod
    def of(cls, store: dict[str, object], bind_timeout_seconds: int) -> Assumptions:
        found = store.get(_KEY)
        if not isinstance(found, cls):
            found = store[_KEY] = cls(bind_timeout_seconds)
        return found

    def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        self._volumes[volume.name] = (volume, claim.key)

    def select_node(self, claim: PersistentVolumeClaim, node: str) -> None:
        self._claims[claim.key] = (claim, node)

    def forget(self, volume_names: list[str], claim_keys: list[str]) -> None:
        for name in volume_names:
            self._volumes.pop(name, None)
        for key in claim_keys:
            self._claims.pop(key, None)

    def holder(self, volume: PersistentVolume) -> str | None:
        """``namespace/name`` of the claim that the volume belongs to, so far as is known; None = it is free."""
        assumed = self._volumes.get(volume.name)
        if assumed is not None:
            if assumed[0] is volume:
                return assumed[1]
            del self._volumes[volume.name]
        ref = volume.spec.claim_ref
        return None if ref is None else f"{ref.namespace}/{ref.name}"

    def holds(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        """Whether the volume is meant for exactly this claim."""
        if self.holder(volume) != claim.key:
            return False
        ref = volume.spec.claim_ref
        return ref is None or not ref.uid or ref.uid == claim.metadata.uid

    def selected_node(self, claim: PersistentVolumeClaim) -> str | None:
        assumed = self._claims.get(claim.key)
        if assumed is not None:
            if assumed[0] is claim:
                return assumed[1]
            del self._claims[claim.key]
        return claim.metadata.annotations.get(SELECTED_NODE)

    def drop_gone(self, listers: Listers) -> None:
        """Forget about objects that are no more."""
        for name in [n for n in self._volumes if n not in listers.volumes]:
            del self._volumes[name]
        for key in [k for k in self._claims if k not in listers.claims]:
            del self._claims[key]
