"""What binding a pod with claims has to write first (spec 05 §4.9)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def _nothing() -> None:
    """Nothing was assumed."""


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """Volumes given to claims (volume name, ``namespace/name`` of the claim), and claims that get ``node`` as their
    selected node, to be provisioned there. All must be bound within the time; ``abandon`` takes back what was assumed
    when that comes to nothing."""

    node: str
    bindings: tuple[tuple[str, str], ...]
    provisions: tuple[str, ...]
    timeout_seconds: int = 600
    abandon: Callable[[], None] = field(default=_nothing, compare=False)

    @property
    def claims(self) -> tuple[str, ...]:
        return (*(claim for _, claim in self.bindings), *self.provisions)
