"""The vectorised division against the procedure of spec 04 §6.2 written out with vectors."""

from hypothesis import given, settings
from hypothesis import strategies as st

from vcscheduler.model.resources import INFINITY, ZERO, Resources
from vcscheduler.plugins.deserved import Claim, divide

NAMES = ("gpu.com/a", "gpu.com/b", "pods")
AMOUNTS = st.integers(0, 12).map(lambda n: float(n * 500))
VECTORS = st.builds(
    Resources,
    AMOUNTS,
    AMOUNTS,
    st.none() | st.dictionaries(st.sampled_from(NAMES), AMOUNTS),
)
CLAIMS = st.builds(Claim, st.integers(0, 4), VECTORS, VECTORS, VECTORS)


def by_the_book(total: Resources, claims: list[Claim]) -> list[Resources]:
    deserved = [Resources() for _ in claims]
    met: set[int] = set()
    remaining = total.clone()
    while True:
        weight = sum(c.weight for i, c in enumerate(claims) if i not in met)
        if weight == 0:
            return deserved
        old, inc, dec = remaining.clone(), Resources(), Resources()
        for i, c in enumerate(claims):
            if i in met:
                continue
            prev = deserved[i].clone()
            d = deserved[i].add(remaining.clone().multiply(c.weight / weight))
            d.min_dimension(c.real_capability, INFINITY)
            d.min_dimension(c.request, ZERO)
            d = deserved[i] = d.maximum(c.guarantee)
            if c.request.less_equal(d) or d.same(prev):
                met.add(i)
            inc.add(d.above(prev))
            dec.add(prev.above(d))
        remaining = remaining.add(dec).above(inc)
        if remaining.is_empty() or remaining.same(old):
            return deserved


@settings(max_examples=400, deadline=None)
@given(VECTORS, st.lists(CLAIMS, max_size=5))
def test_same_as_the_procedure_bit_for_bit(total: Resources, claims: list[Claim]) -> None:
    assert [str_exact(r) for r in divide(total, claims)] == [str_exact(r) for r in by_the_book(total, claims)]


def str_exact(r: Resources) -> tuple[float, float, list[tuple[str, float]]]:
    return r.cpu, r.memory, sorted(r.scalar_items())
