"""Priority queues: the reference's heap, and the cheap ones that give the same where keys do not change."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from profiles import MANY, SEEDS
from vcscheduler.framework.heap import KeyedQueue, PriorityQueue, SortedQueue


def drain(queue: PriorityQueue[int] | KeyedQueue[int] | SortedQueue[int]) -> list[int]:
    found = []
    while (item := queue.pop()) is not None:
        found.append(item)
    return found


def test_equal_elements_come_out_in_the_references_order() -> None:
    queue = PriorityQueue[str](lambda a, b: False, "abc")
    assert [queue.pop(), queue.pop(), queue.pop(), queue.pop()] == ["a", "c", "b", None]


class Plain:
    """The heap of spec 02 §6.3, word for word: push and pop with swaps of one array."""

    def __init__(self, keys: dict[int, int]) -> None:
        self.keys = keys
        self.array: list[int] = []

    def less(self, i: int, j: int) -> bool:
        return self.keys[self.array[i]] < self.keys[self.array[j]]

    def swap(self, i: int, j: int) -> None:
        self.array[i], self.array[j] = self.array[j], self.array[i]

    def push(self, item: int) -> None:
        self.array.append(item)
        j = len(self.array) - 1
        while j > 0 and self.less(j, (j - 1) // 2):
            self.swap(j, (j - 1) // 2)
            j = (j - 1) // 2

    def pop(self) -> int | None:
        if not self.array:
            return None
        n, i = len(self.array) - 1, 0
        self.swap(0, n)
        while 2 * i + 1 < n:
            child = 2 * i + 1
            if child + 1 < n and self.less(child + 1, child):
                child += 1
            if not self.less(child, i):
                break
            self.swap(child, i)
            i = child
        return self.array.pop()


@MANY
@given(SEEDS)
def test_keys_may_change_inside_as_in_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    keys = {i: rng.randint(0, 5) for i in range(40)}
    plain, queue = Plain(keys), PriorityQueue[int](lambda a, b: keys[a] < keys[b])
    for _ in range(120):
        action = rng.random()
        if action < 0.5:
            item = rng.randrange(40)
            plain.push(item)
            queue.push(item)
        elif action < 0.8:
            assert queue.pop() == plain.pop()
        else:
            keys[rng.randrange(40)] = rng.randint(0, 5)
    assert len(queue) == len(plain.array)
    assert drain(queue.clone()) == [plain.pop() for _ in range(len(queue))]


@MANY
@given(st.lists(st.integers(), unique=True))
def test_with_constant_distinct_keys_all_queues_agree(items: list[int]) -> None:
    keyed = KeyedQueue[int](lambda x: x)
    for item in items:
        keyed.push(item)
    expected = drain(PriorityQueue(lambda a, b: a < b, items))
    assert drain(keyed) == drain(SortedQueue(sorted(items))) == expected == sorted(items)


def test_a_clone_is_independent() -> None:
    queue = PriorityQueue[int](lambda a, b: a < b, [3, 1, 2])
    copy = queue.clone()
    assert drain(copy) == [1, 2, 3]
    assert len(queue) == 3


def test_runs_of_a_sorted_queue() -> None:
    queue = SortedQueue([1, 1, 1, 2, 1])
    same = int.__eq__
    assert queue.run(same, 2) == [1, 1]
    assert queue.run(same, 9) == [1, 1, 1]
    assert (len(queue), queue.peek()) == (5, 1)
    queue.skip(3)
    copy = queue.clone()
    assert (queue.pop(), queue.run(same, 9)) == (2, [1])
    assert drain(copy) == [2, 1]
