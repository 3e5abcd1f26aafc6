"""Arguments of the usage plugin (spec 05 §10). What cannot be used keeps its default, with a warning."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TypeVar

from vcscheduler.config import Arguments
from vcscheduler.config.decoding import type_name
from vcscheduler.objects.quantity import QuantityError, milli_value, value

log = logging.getLogger(__name__)

_N = TypeVar("_N", int, float)

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Options:
    """``cpu_threshold``, ``memory_threshold``: percent. ``best_effort_*``: milli-CPU and bytes that a pod without
    requests is taken to use."""

    weight: int
    cpu_weight: int
    memory_weight: int
    cpu_threshold: int
    memory_threshold: int
    request_ratio: float
    burst_ratio: float
    risk_threshold: float
    risk_factor: float
    best_effort_cpu: float
    best_effort_memory: float

    @classmethod
    def of(cls, arguments: Arguments) -> Options:
        thresholds = _section(arguments, "thresholds")
        estimator = _section(arguments, "estimator")
        return cls(
            weight=_within(arguments, "usage.weight", arguments.get_int("usage.weight", 5), 5, 0),
            cpu_weight=_within(arguments, "cpu.weight", arguments.get_int("cpu.weight", 1), 1, 0),
            memory_weight=_within(arguments, "memory.weight", arguments.get_int("memory.weight", 1), 1, 0),
            cpu_threshold=_within(thresholds, "cpu", thresholds.get_int("cpu", 80), 80, 0, 100),
            memory_threshold=_within(thresholds, "mem", thresholds.get_int("mem", 80), 80, 0, 100),
            request_ratio=_float(estimator, "request_ratio", 0.7, 0.0, 1.0),
            burst_ratio=_float(estimator, "burst_ratio", 0.0, 0.0, 1.0),
            risk_threshold=_float(estimator, "risk_threshold", 0.6, 0.0, 1.0),
            risk_factor=_float(estimator, "risk_factor", 1.2, 1.0),
            best_effort_cpu=_amount(estimator, "be_cpu", 250.0, 1),
            best_effort_memory=_amount(estimator, "be_mem", 200.0 * MIB, MIB),
        )


def _section(arguments: Arguments, key: str) -> Arguments:
    given = arguments.get(key)
    owner = f"{arguments.owner}: {key}" if arguments.owner else key
    if given is not None and not isinstance(given, dict):
        log.warning("argument %r: expected a mapping, found %s: the defaults are used", key, type_name(given))
        given = None
    return Arguments(given, owner)


def _refuse(arguments: Arguments, key: str, found: object, wanted: str) -> None:
    of = f" of {arguments.owner}" if arguments.owner else ""
    log.warning("argument %r%s: expected %s, found %r: the default is used", key, of, wanted, found)


def _within(arguments: Arguments, key: str, found: _N, default: _N, least: _N, most: _N | None = None) -> _N:
    if found >= least and (most is None or found <= most):
        return found
    _refuse(arguments, key, found, f"at least {least}" if most is None else f"{least} to {most}")
    return default


def _float(arguments: Arguments, key: str, default: float, least: float, most: float | None = None) -> float:
    return _within(arguments, key, arguments.get_float(key, default), default, least, most)


def _amount(arguments: Arguments, key: str, default: float, unit: int) -> float:
    """A number counts ``unit``; a text is a quantity: of cores where the unit is 1, else of bytes."""
    found = arguments.get(key)
    if found is None:
        return default
    amount = -1
    if isinstance(found, int) and not isinstance(found, bool):
        amount = found * unit
    elif isinstance(found, str):
        try:
            amount = milli_value(found) if unit == 1 else value(found)
        except QuantityError:
            amount = -1
    if amount < 0:
        _refuse(arguments, key, found, "a number or a quantity, not negative")
        return default
    return float(amount)
