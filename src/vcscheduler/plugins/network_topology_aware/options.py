"""What the plugin's arguments say (spec 06 §A7.1)."""

from __future__ import annotations

from dataclasses import dataclass

from vcscheduler.config import Arguments
from vcscheduler.model.resources import CPU, MEMORY

_RESOURCES = "hypernode.binpack.resources"


@dataclass(frozen=True, slots=True)
class Options:
    """``weights``: by resource, cpu and memory first, then the others by name, the order in which they are summed."""

    scale: float
    weights: dict[str, int]
    normal_pods: bool
    fading: float
    max_evict_domains: int

    @classmethod
    def read(cls, arguments: Arguments) -> Options:
        listed = {name.strip() for name in arguments.get_str(_RESOURCES, "").split(",")} - {""}
        weights = {
            CPU: _positive(arguments.get_int("hypernode.binpack.cpu", 1)),
            MEMORY: _positive(arguments.get_int("hypernode.binpack.memory", 1)),
        }
        weights |= {name: _positive(arguments.get_int(f"{_RESOURCES}.{name}", 1)) for name in sorted(listed)}
        fading = arguments.get_float("hypernode.binpack.normal-pod.fading", 0.8)
        most = arguments.get_int("hypernode.gradient.evict.max-hypernodes", 8)
        return cls(
            scale=100.0 * _positive(arguments.get_int("weight", 1)),
            weights=weights,
            normal_pods=arguments.get_bool("hypernode.binpack.normal-pod.enable", True),
            fading=0.8 if fading < 0 else fading,
            max_evict_domains=8 if most <= 0 else most,
        )


def _positive(weight: int) -> int:
    return 1 if weight < 0 else weight
