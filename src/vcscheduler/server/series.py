"""Series of numbers for Prometheus: counters, gauges and histograms that cost little to feed.

prometheus-client's own instruments observe one value at a time and put ``_total`` behind every counter's name. Here a
whole gang is one observation with a count, and names are exactly the reference's, ``job_retry_counts`` included.
Nothing locks: the thread that feeds also copies, and other threads expose the copies.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from prometheus_client import Metric
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]
Kind = Literal["counter", "gauge"]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def exponential(least: float, greatest: float, count: int) -> tuple[float, ...]:
    """Upper bounds as the reference spaces them: `count` of them from `least` to `greatest` (spec 07 §5)."""
    step = (greatest / least) ** (1.0 / (count - 1))
    return tuple(least * step**i for i in range(count))


class Values:
    """A counter or a gauge: one number for each combination of label values."""

    def __init__(self, kind: Kind, name: str, about: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.labels = tuple(labels)
        self._kind: Kind = kind
        self._about = about
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def set(self, value: float, *labels: str) -> None:
        self._values[labels] = value

    def add(self, value: float, *labels: str) -> None:
        self._values[labels] = self._values.get(labels, 0.0) + value

    def get(self, *labels: str) -> float:
        return self._values.get(labels, 0.0)

    def replace(self, values: dict[Labels, float]) -> None:
        """These values and no others."""
        self._values = values

    def keep(self, wanted: Callable[[Labels], bool]) -> None:
        """Forget what is about things that are gone."""
        gone = [labels for labels in self._values if not wanted(labels)]
        for labels in gone:
            del self._values[labels]

    def copy(self) -> Values:
        """As it stands now, for another thread."""
        twin = Values(self._kind, self.name, self._about, self.labels)
        twin._values = dict(self._values)
        return twin

    def family(self) -> Metric:
        metric = Metric(self.name, self._about, self._kind)
        for labels, value in self._values.items():
            metric.add_sample(self.name, dict(zip(self.labels, labels)), value)
        return metric


class Histogram:
    """Values by size. `bounds`: the upper bound of each bucket, without the last, infinite one."""

    def __init__(self, name: str, about: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        self.name = name
        self.labels = tuple(labels)
        self.bounds = tuple(bounds)
        self._about = about
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._row(())

    def _row(self, labels: Labels) -> list[int]:
        counts = self._counts[labels] = [0] * (len(self.bounds) + 1)
        self._sums[labels] = 0.0
        return counts

    def observe(self, value: float, *labels: str, times: int = 1) -> None:
        """`times`: how often the value occurred."""
        counts = self._counts.get(labels)
        if counts is None:
            counts = self._row(labels)
        counts[bisect_left(self.bounds, value)] += times
        self._sums[labels] += value * times

    def count(self, *labels: str) -> int:
        return sum(self._counts.get(labels, ()))

    def copy(self) -> Histogram:
        """As it stands now, for another thread."""
        twin = Histogram(self.name, self._about, self.bounds, self.labels)
        twin._counts = {labels: list(counts) for labels, counts in self._counts.items()}
        twin._sums = dict(self._sums)
        return twin

    def family(self) -> Metric:
        metric = Metric(self.name, self._about, "histogram")
        edges = (*(_number(bound) for bound in self.bounds), "+Inf")
        for labels, counts in self._counts.items():
            named = dict(zip(self.labels, labels))
            total = 0
            for edge, n in zip(edges, counts):
                total += n
                metric.add_sample(f"{self.name}_bucket", {**named, "le": edge}, total)
            metric.add_sample(f"{self.name}_sum", named, self._sums[labels])
            metric.add_sample(f"{self.name}_count", named, total)
        return metric


Series = Values | Histogram


def expose(metrics: Iterable[Metric]) -> str:
    """The text that Prometheus reads, under the names as they are."""
    return "".join(_lines(metrics))


def _lines(metrics: Iterable[Metric]) -> Iterator[str]:
    for metric in metrics:
        about = metric.documentation.replace("\\", r"\\").replace("\n", r"\n")
        yield f"# HELP {metric.name} {about}\n# TYPE {metric.name} {metric.type}\n"
        for sample in metric.samples:
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
            yield f"{sample.name}{{{labels}}} " if labels else f"{sample.name} "
            yield f"{_number(sample.value)}\n"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]
