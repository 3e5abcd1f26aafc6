"""One extension point: functions by plugin name, and the walk over those that the configuration enables.

What the answers amount to is the business of extension_points.py and simulation_points.py.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from vcscheduler.config import PluginOption, Tier

F = TypeVar("F")
T = TypeVar("T")
Compare = Callable[[T, T], float]


_callable_with: set[tuple[object, bool, int]] = set()


def check_takes(function: object, count: int) -> None:
    """Whether a function can be called with so many arguments. Known at registration, a mistake bears the name of the
    plugin that made it.

    Raises:
        TypeError: it cannot.
    """
    # Plugins are made anew for every session; their code is not.
    code = getattr(function, "__code__", None)
    known = (code, hasattr(function, "__self__"), count)
    if code is not None and known in _callable_with:
        return
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return  # Written in C: nobody can tell.
    try:
        signature.bind(*([None] * count))
    except TypeError as error:
        name = getattr(function, "__qualname__", repr(function))
        raise TypeError(f"{name}{signature} will be called with {count} arguments: {error}") from None
    if code is not None:
        _callable_with.add(known)


class Point(Generic[F]):
    """Functions of one extension point by plugin name, and the walk over them."""

    __slots__ = ("_all", "_flag", "_functions", "_named", "_takes", "_tiers", "_walk")

    def __init__(self, tiers: Sequence[Tier], flag: str | None, takes: int | None = None) -> None:
        """``takes``: with how many arguments the functions are called; None if they are no plain functions."""
        self._tiers = tiers
        self._flag = flag
        self._takes = takes
        self._functions: dict[str, F] = {}
        self._walk: list[list[F]] | None = None
        self._all: list[F] = []
        self._named: list[tuple[str, F]] | None = None

    def add(self, name: str, function: F) -> None:
        """
        Raises:
            TypeError: the function cannot be called as it will be.
        """
        if self._takes is not None:
            check_takes(function, self._takes)
        self._functions[name] = function
        self._walk = self._named = None

    @property
    def tiers(self) -> list[list[F]]:
        """Functions in walk order, tier by tier; tiers without any are left out."""
        if self._walk is None:
            walk = [
                [self._functions[p.name] for p in tier.plugins if p.name in self._functions and self._enabled(p)]
                for tier in self._tiers
            ]
            self._walk = [functions for functions in walk if functions]
            self._all = [f for tier in self._walk for f in tier]
        return self._walk

    @property
    def all(self) -> list[F]:
        if self._walk is None:
            return [f for tier in self.tiers for f in tier]
        return self._all

    @property
    def named(self) -> list[tuple[str, F]]:
        if self._named is None:
            self._named = [
                (p.name, self._functions[p.name])
                for tier in self._tiers
                for p in tier.plugins
                if p.name in self._functions and self._enabled(p)
            ]
        return self._named

    def _enabled(self, option: PluginOption) -> bool:
        return self._flag is None or bool(getattr(option, self._flag))


class Order(Generic[T]):
    """An ordering point: the first plugin that tells two elements apart decides, then the fallback key.

    ``key`` orders like the comparison where every plugin in the walk offers a key; it is None otherwise, and then
    only ``less`` may be used.
    """

    def __init__(self, tiers: Sequence[Tier], flag: str | None, fallback: Callable[[T], Any]) -> None:
        self.compare_fns: Point[Compare[T]] = Point(tiers, flag, takes=2)
        self._keys: dict[str, Callable[[T], Any]] = {}
        self._fallback = fallback

    def add(self, name: str, compare: Compare[T], key: Callable[[T], Any] | None) -> None:
        self.compare_fns.add(name, compare)
        if key is not None:
            self._keys[name] = key
        else:
            self._keys.pop(name, None)
        for cached in ("less", "key"):
            self.__dict__.pop(cached, None)

    def compare(self, a: T, b: T) -> float:
        """Plugins only: negative = a first, 0 = they do not tell."""
        for f in self.compare_fns.all:
            c = f(a, b)
            if c != 0:
                return c
        return 0

    @functools.cached_property
    def less(self) -> Callable[[T, T], bool]:
        functions, fallback = self.compare_fns.all, self._fallback

        def less(a: T, b: T) -> bool:
            for f in functions:
                c = f(a, b)
                if c != 0:
                    return c < 0
            return bool(fallback(a) < fallback(b))

        return less

    @functools.cached_property
    def key(self) -> Callable[[T], tuple[Any, ...]] | None:
        named = self.compare_fns.named
        if any(name not in self._keys for name, _ in named):
            return None
        keys, fallback = [self._keys[name] for name, _ in named], self._fallback
        return lambda item: (*[k(item) for k in keys], fallback(item))
