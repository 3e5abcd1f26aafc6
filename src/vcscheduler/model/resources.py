"""Resource vectors and their algebra.

A vector holds ``cpu`` (milli-cores), ``memory`` (bytes) and named scalars: ``pods`` in whole pods, everything else
in thousandths of its unit. A scalar that is absent differs from one that is 0 in several operations, and a vector
without any scalar map ("nil", here ``None``) differs from one with an empty map; both follow upstream (spec 01 §1).
All values are IEEE doubles; quantities are integral after conversion, so sums are exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache

from vcscheduler.objects.quantity import milli_value, value

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
EPSILON = 0.1
MAX_FLOAT = 1.7976931348623157e308
MAX_SCALAR = float(2**63)

QuantityText = str | int | float


class Default(Enum):
    """What a scalar that is missing on one side stands for in a comparison."""

    ZERO = "Zero"
    INFINITY = "Infinity"


ZERO = Default.ZERO
INFINITY = Default.INFINITY

_QUALIFIED = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@lru_cache(maxsize=4096)
def is_scalar_name(name: str) -> bool:
    """Whether a resource name becomes a scalar dimension (spec 01 §1.3)."""
    if name.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in name:
        return True
    if "/" not in name or name.startswith("requests."):
        return False
    prefix, _, rest = f"requests.{name}".partition("/")
    return len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix) is not None and _QUALIFIED.fullmatch(rest) is not None


def le(a: float, b: float) -> bool:
    """``a <= b`` within the tolerance of a tenth of a unit."""
    return a < b or abs(a - b) < EPSILON


def ratio(x: float, y: float) -> float:
    """``x / y``; with nothing to divide by: 0 for nothing, else 1 (spec 01 §1.7, Share)."""
    if y == 0:
        return 0.0 if x == 0 else 1.0
    return x / y


class Resources:
    """A resource vector. Arithmetic methods change and return the receiver; comparisons never change anything."""

    __slots__ = ("cpu", "max_tasks", "memory", "scalars")

    def __init__(
        self,
        cpu: float = 0.0,
        memory: float = 0.0,
        scalars: dict[str, float] | None = None,
        max_tasks: int = 0,
    ) -> None:
        self.cpu = cpu
        self.memory = memory
        self.scalars = scalars
        self.max_tasks = max_tasks

    @classmethod
    def from_list(
        cls, quantities: Mapping[str, QuantityText] | None, ignored: frozenset[str] = frozenset()
    ) -> Resources:
        """The vector of a Kubernetes resource list. ``ignored``: device names that do not count (spec 01 §1.4)."""
        r = cls()
        for name, q in (quantities or {}).items():
            if name == CPU:
                r.cpu += milli_value(q)
            elif name == MEMORY:
                r.memory += value(q)
            elif name == PODS:
                n = value(q)
                r.max_tasks += n
                r.add_scalar(PODS, float(n))
            elif name.startswith("count/"):
                continue
            elif name == "ephemeral-storage" or (is_scalar_name(name) and name not in ignored):
                r.add_scalar(name, float(milli_value(q)))
        return r

    @classmethod
    def infinite(cls) -> Resources:
        return cls(MAX_FLOAT, MAX_FLOAT, None, 2**63 - 1)

    def clone(self) -> Resources:
        return Resources(self.cpu, self.memory, None if self.scalars is None else dict(self.scalars), self.max_tasks)

    # --- reading ---------------------------------------------------------------------------------------------

    def get(self, name: str) -> float:
        if name == CPU:
            return self.cpu
        if name == MEMORY:
            return self.memory
        return self.scalars.get(name, 0.0) if self.scalars else 0.0

    def is_empty(self) -> bool:
        """Nothing of anything but ``pods``."""
        if self.cpu >= EPSILON or self.memory >= EPSILON:
            return False
        return not self.scalars or all(v < EPSILON for n, v in self.scalars.items() if n != PODS)

    def names(self) -> list[str]:
        """Dimensions of which there is something: cpu, memory, then scalars ascending (``pods`` included)."""
        found = [CPU] if self.cpu >= EPSILON else []
        if self.memory >= EPSILON:
            found.append(MEMORY)
        if self.scalars:
            found += [n for n in sorted(self.scalars) if self.scalars[n] >= EPSILON]
        return found

    def common(self, other: Resources, *, ignore_pods: bool = False) -> list[str]:
        """Names in both vectors' :meth:`names`, in the order of ``other``."""
        mine = set(self.names())
        return [n for n in other.names() if n in mine and not (ignore_pods and n == PODS)]

    def scalar_items(self) -> Iterable[tuple[str, float]]:
        return self.scalars.items() if self.scalars else ()

    # --- comparing (spec 01 §1.6, evaluated exactly as written there) -----------------------------------------

    def less(self, other: Resources, default: Default = ZERO) -> bool:
        if not (self.cpu < other.cpu and self.memory < other.memory):
            return False
        return self._scalars_within(other, default, strict=True)

    def less_equal(self, other: Resources, default: Default = ZERO) -> bool:
        if not (le(self.cpu, other.cpu) and le(self.memory, other.memory)):
            return False
        return self._scalars_within(other, default, strict=False)

    def _scalars_within(self, other: Resources, default: Default, *, strict: bool) -> bool:
        mine, theirs = self.scalars or {}, other.scalars or {}
        if default is INFINITY and any(n not in mine for n in theirs):
            return False
        for n, v in mine.items():
            if n not in theirs and default is INFINITY:
                continue
            w = theirs.get(n, 0.0)
            if not (v < w if strict else le(v, w)):
                return False
        return True

    def exceeding(self, other: Resources, default: Default = ZERO) -> list[str]:
        """Names in which this is more than ``other``; empty = fits (``LessEqualWithResourcesName``)."""
        failed = [] if le(self.cpu, other.cpu) else [CPU]
        if not le(self.memory, other.memory):
            failed.append(MEMORY)
        if self.scalars:
            theirs = other.scalars or {}
            for n in sorted(self.scalars):
                if n not in theirs and default is INFINITY:
                    continue
                if not le(self.scalars[n], theirs.get(n, 0.0)):
                    failed.append(n)
        return failed

    def exceeding_where(self, other: Resources, req: Resources | None) -> list[str]:
        """As :meth:`exceeding`, in the dimensions that ``req`` asks for, strictly and without ``pods``
        (``LessEqualWithDimensionAndResourcesName``, FITS in spec 04 §1.1)."""
        if req is None:
            return self.exceeding(other, ZERO)
        failed = [CPU] if req.cpu > 0 and self.cpu > other.cpu else []
        if req.memory > 0 and self.memory > other.memory:
            failed.append(MEMORY)
        if self.scalars is None or not req.scalars:
            return failed
        theirs = other.scalars or {}
        for n in sorted(req.scalars):
            if n != PODS and req.scalars[n] > 0 and self.scalars.get(n, 0.0) > theirs.get(n, 0.0):
                failed.append(n)
        return failed

    def less_partly(self, other: Resources, default: Default = ZERO) -> bool:
        if self.cpu < other.cpu or self.memory < other.memory:
            return True
        return self._partly(other, default, strict=True)

    def less_equal_partly(self, other: Resources, default: Default = ZERO) -> bool:
        if le(self.cpu, other.cpu) or le(self.memory, other.memory):
            return True
        return self._partly(other, default, strict=False)

    def _partly(self, other: Resources, default: Default, *, strict: bool) -> bool:
        mine, theirs = self.scalars or {}, other.scalars or {}
        if default is ZERO and any(n not in mine for n in theirs):
            return True
        for n, v in mine.items():
            if n not in theirs and default is INFINITY:
                return True
            w = theirs.get(n, 0.0)
            if v < w if strict else le(v, w):
                return True
        return False

    def within_where(self, other: Resources, req: Resources | None) -> list[str]:
        """Names asked for by ``req`` (not ``pods``) in which this is at most ``other``
        (``LessEqualPartlyWithDimension``)."""
        if req is None:
            return []
        found = [CPU] if req.cpu > 0 and le(self.cpu, other.cpu) else []
        if req.memory > 0 and le(self.memory, other.memory):
            found.append(MEMORY)
        for n, v in sorted(req.scalar_items()):
            if n != PODS and v > 0 and le(self.get(n), other.get(n)):
                found.append(n)
        return found

    def within_where_set(self, other: Resources, req: Resources | None) -> list[str]:
        """As :meth:`within_where`, leaving out what both sides have nothing of
        (``LessEqualPartlyWithDimensionZeroFiltered``, ANYLE in spec 04 §1.1)."""
        return [n for n in self.within_where(other, req) if not (self.get(n) < EPSILON and other.get(n) < EPSILON)]

    def above_where(self, other: Resources | None, req: Resources | None) -> list[str]:
        """Names asked for by ``req`` (not ``pods``) in which this is strictly more
        (``GreaterPartlyWithDimension``)."""
        if req is None:
            return []
        theirs = other or Resources()
        found = [CPU] if req.cpu > 0 and self.cpu > theirs.cpu else []
        if req.memory > 0 and self.memory > theirs.memory:
            found.append(MEMORY)
        for n, v in sorted(req.scalar_items()):
            if n != PODS and v > 0 and self.get(n) > theirs.get(n):
                found.append(n)
        return found

    def above_where_set(self, other: Resources | None, req: Resources | None) -> list[str]:
        """As :meth:`above_where`, in dimensions that ``other`` says something about
        (``GreaterPartlyWithRelevantDimensions``, ANYGT in spec 04 §1.1)."""
        theirs = other or Resources()
        named = theirs.scalars or {}
        return [
            n for n in self.above_where(theirs, req) if (n in (CPU, MEMORY) and theirs.get(n) >= EPSILON) or n in named
        ]

    def equal(self, other: Resources) -> bool:
        """Equal within the tolerance; scalars that only ``other`` has are not looked at."""
        if abs(self.cpu - other.cpu) >= EPSILON or abs(self.memory - other.memory) >= EPSILON:
            return False
        return all(abs(v - other.get(n)) < EPSILON for n, v in self.scalar_items())

    def same(self, other: Resources) -> bool:
        """Bit for bit the same values and the same names; a missing map equals an empty one."""
        return self.cpu == other.cpu and self.memory == other.memory and (self.scalars or {}) == (other.scalars or {})

    # --- arithmetic (spec 01 §1.7) ----------------------------------------------------------------------------

    def add(self, other: Resources) -> Resources:
        self.cpu += other.cpu
        self.memory += other.memory
        if other.scalars:
            if self.scalars is None:
                self.scalars = dict(other.scalars)
            else:
                mine = self.scalars
                for n, v in other.scalars.items():
                    mine[n] = mine.get(n, 0.0) + v
        return self

    def add_times(self, other: Resources, times: int) -> Resources:
        """``times`` additions of ``other`` at once; exact, since quantities are integral."""
        self.cpu += other.cpu * times
        self.memory += other.memory * times
        if other.scalars:
            mine = self.scalars if self.scalars is not None else {}
            for n, v in other.scalars.items():
                mine[n] = mine.get(n, 0.0) + v * times
            self.scalars = mine
        return self

    def sub(self, other: Resources) -> Resources:
        """Plain subtraction; a vector without a scalar map ignores the other's scalars, as upstream does."""
        self.cpu -= other.cpu
        self.memory -= other.memory
        if self.scalars is not None and other.scalars:
            mine = self.scalars
            for n, v in other.scalars.items():
                mine[n] = mine.get(n, 0.0) - v
        return self

    def multiply(self, factor: float) -> Resources:
        self.cpu *= factor
        self.memory *= factor
        if self.scalars:
            for n in self.scalars:
                self.scalars[n] *= factor
        return self

    def add_scalar(self, name: str, amount: float) -> None:
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = self.scalars.get(name, 0.0) + amount

    def set_scalar(self, name: str, amount: float) -> None:
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = amount

    def set_max(self, other: Resources) -> Resources:
        self.cpu = max(self.cpu, other.cpu)
        self.memory = max(self.memory, other.memory)
        if other.scalars is not None:
            if self.scalars is None:
                self.scalars = dict(other.scalars)
            else:
                for n, v in other.scalars.items():
                    if n not in self.scalars or v > self.scalars[n]:
                        self.scalars[n] = v
        return self

    def min_dimension(self, other: Resources, default: Default) -> Resources:
        """Per dimension the minimum; names only in ``other`` are not added (``MinDimensionResource``)."""
        self.cpu = min(self.cpu, other.cpu)
        self.memory = min(self.memory, other.memory)
        if self.scalars:
            theirs = other.scalars or {}
            for n, v in self.scalars.items():
                if n in theirs:
                    self.scalars[n] = min(v, theirs[n])
                elif default is ZERO:
                    self.scalars[n] = 0.0
        return self

    def above(self, other: Resources | None) -> Resources:
        """What this has more than ``other``, never negative; scalars in which it has none are left out
        (``ExceededPart``, POS in spec 04 §1.1). With nothing to compare, this itself."""
        if other is None:
            return self
        r = Resources(max(self.cpu - other.cpu, 0.0), max(self.memory - other.memory, 0.0), {})
        assert r.scalars is not None
        for n in {**(self.scalars or {}), **(other.scalars or {})}:
            d = self.get(n) - other.get(n)
            if d > 0:
                r.scalars[n] = d
        return r

    def maximum(self, other: Resources) -> Resources:
        """A new vector: the larger value of each dimension; negative scalars are dropped (``helpers.Max``)."""
        r = Resources(max(self.cpu, other.cpu), max(self.memory, other.memory))
        if self.scalars is not None or other.scalars is not None:
            r.scalars = {}
            for side in (self.scalars or {}, other.scalars or {}):
                for n, v in side.items():
                    if v >= 0 and v >= r.scalars.get(n, 0.0):
                        r.scalars[n] = v
        return r

    def minimum(self, other: Resources) -> Resources:
        """A new vector: the smaller value; names only in ``other`` are lost (``helpers.Min``)."""
        r = Resources(min(self.cpu, other.cpu), min(self.memory, other.memory))
        if self.scalars is not None and other.scalars is not None:
            r.scalars = {n: min(v, other.get(n)) for n, v in self.scalars.items()}
        return r

    # --- text -------------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        parts = [f"cpu {_number(self.cpu)}", f"memory {_number(self.memory)}"]
        parts += [f"{n} {_number(v)}" for n, v in sorted(self.scalar_items())]
        return ", ".join(parts)

    __repr__ = __str__


def _number(v: float) -> str:
    if v == MAX_FLOAT:
        return "maxFloat"
    return "maxInt" if v == MAX_SCALAR else f"{v:.2f}"
