"""The priority queues of the scheduler: which element comes next.

``PriorityQueue`` is the reference's binary heap, sift for sift: its comparator reads live state, so keys change while
elements are inside and the exact algorithm decides what comes out (spec 02 §6.3). Where keys cannot change inside and
the order is total, any queue gives the same sequence, and ``KeyedQueue`` and ``SortedQueue`` give it cheaply.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")
_first = operator.itemgetter(0)
Less = Callable[[T, T], bool]


class Queue(Protocol[T]):
    """What the actions need of any of them."""

    def push(self, item: T) -> None: ...

    def pop(self) -> T | None: ...

    def __len__(self) -> int: ...


class PriorityQueue(Generic[T]):
    """Binary heap over a list; ``less(a, b)``: a comes out before b."""

    __slots__ = ("_items", "_less")

    def __init__(self, less: Less[T], items: Iterable[T] = ()) -> None:
        self._less = less
        self._items: list[T] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def push(self, item: T) -> None:
        items, less = self._items, self._less
        items.append(item)
        j = len(items) - 1
        while j > 0:
            i = (j - 1) // 2
            if not less(items[j], items[i]):
                break
            items[i], items[j] = items[j], items[i]
            j = i

    def pop(self) -> T | None:
        items, less = self._items, self._less
        if not items:
            return None
        n = len(items) - 1
        items[0], items[n] = items[n], items[0]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and less(items[child + 1], items[child]):
                child += 1
            if not less(items[child], items[i]):
                break
            items[i], items[child] = items[child], items[i]
            i = child
        return items.pop()

    def rekey(self, renewed: Callable[[T], T]) -> None:
        """Exchange every element for what ``renewed`` makes of it, each in its place."""
        self._items = [renewed(item) for item in self._items]

    def clone(self) -> PriorityQueue[T]:
        copy: PriorityQueue[T] = PriorityQueue(self._less)
        copy._items = list(self._items)
        return copy


class KeyedQueue(Generic[T]):
    """Smallest key first, the key taken when an element is pushed. Keys must be distinct.

    What is pushed before the first look is sorted once; only what comes later goes through a heap.
    """

    __slots__ = ("_heap", "_key", "_sorted", "_unsorted")

    def __init__(self, key: Callable[[T], Any]) -> None:
        self._key = key
        self._unsorted: list[tuple[Any, T]] | None = []
        self._sorted: list[tuple[Any, T]] = []
        self._heap: list[tuple[Any, T]] = []

    def __len__(self) -> int:
        return len(self._unsorted or ()) + len(self._sorted) + len(self._heap)

    def push(self, item: T) -> None:
        if self._unsorted is not None:
            self._unsorted.append((self._key(item), item))
        else:
            heapq.heappush(self._heap, (self._key(item), item))

    def pop(self) -> T | None:
        source = self._source()
        if source is None:
            return None
        return source.pop()[1] if source is self._sorted else heapq.heappop(source)[1]

    def peek(self) -> T | None:
        source = self._source()
        if source is None:
            return None
        return source[-1][1] if source is self._sorted else source[0][1]

    def _source(self) -> list[tuple[Any, T]] | None:
        """The list that has the next element, at its end if sorted, at its start if a heap."""
        if self._unsorted is not None:
            self._sorted = sorted(self._unsorted, key=_first, reverse=True)
            self._unsorted = None
        if not self._heap:
            return self._sorted or None
        if not self._sorted or self._heap[0][0] < self._sorted[-1][0]:
            return self._heap
        return self._sorted


class SortedQueue(Generic[T]):
    """Elements sorted once, then only taken. ``peek_run`` and ``skip`` let a caller take several at once."""

    __slots__ = ("_at", "_items")

    def __init__(self, items: list[T], at: int = 0) -> None:
        self._items = items
        self._at = at

    def __len__(self) -> int:
        return len(self._items) - self._at

    def pop(self) -> T | None:
        if self._at == len(self._items):
            return None
        item = self._items[self._at]
        self._at += 1
        return item

    def peek(self) -> T:
        return self._items[self._at]

    def run(self, same: Callable[[T, T], bool], limit: int) -> list[T]:
        """The next elements, up to ``limit``, that are alike with the first of them; they stay in the queue."""
        items, start = self._items, self._at
        end = min(len(items), start + limit)
        first = items[start]
        at = start + 1
        while at < end and same(first, items[at]):
            at += 1
        return items[start:at]

    def skip(self, count: int) -> None:
        self._at += count

    def clone(self) -> SortedQueue[T]:
        return SortedQueue(self._items, self._at)
