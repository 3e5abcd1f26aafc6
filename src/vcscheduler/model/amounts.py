"""Amounts of resources as people read them."""

from __future__ import annotations

from vcscheduler.model.resources import CPU, MAX_FLOAT, MAX_SCALAR, MEMORY, PODS, Resources

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_IN_BYTES = ("ephemeral-storage", "hugepages-")


def amount(name: str, value: float) -> str:
    """A value of a vector: cores, bytes with a binary suffix, whole units. ``amount("cpu", 1500) == "1.5"``.

    Rounded to two digits after the point; without bound: ``∞``.
    """
    if value >= MAX_SCALAR or value == MAX_FLOAT:
        return "∞"
    if name == PODS:
        return _short(value)
    if name == MEMORY:
        return _bytes(value)
    if name.startswith(_IN_BYTES):
        return _bytes(value / 1000)
    return _short(value / 1000)


def amounts(vector: Resources, *, pods: bool = False) -> str:
    """``cpu 1.5, memory 4Gi, nvidia.com/gpu 2``: what a vector has anything of; "nothing" if that is empty."""
    parts = [
        f"{name} {amount(name, vector.get(name))}"
        for name in names(vector)
        if vector.get(name) and (pods or name != PODS)
    ]
    return ", ".join(parts) or "nothing"


def names(vector: Resources) -> list[str]:
    """cpu, memory, then the scalars by name, ``pods`` last."""
    scalars = sorted((name for name, _ in vector.scalar_items()), key=lambda name: (name == PODS, name))
    return [CPU, MEMORY, *scalars]


def _bytes(value: float) -> str:
    for suffix in _BINARY[:-1]:
        if abs(value) < 1024:
            return _short(value) + suffix
        value /= 1024
    return _short(value) + _BINARY[-1]


def _short(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:,.0f}"
