"""The fast forms of "does it fit" against the vector operation they stand for."""

from hypothesis import given
from hypothesis import strategies as st

from vcscheduler.model.resources import MAX_FLOAT, Resources
from vcscheduler.plugins.shares import DominantShare, beyond, times_within, within

AMOUNTS = st.integers(0, 7).map(float)
LIMITS = AMOUNTS | st.floats(0, 40) | st.just(MAX_FLOAT)
NAMES = st.sampled_from(("gpu.com/a", "gpu.com/b", "pods"))


def vectors(amounts: st.SearchStrategy[float]) -> st.SearchStrategy[Resources]:
    return st.builds(Resources, amounts, amounts, st.dictionaries(NAMES, amounts))


@given(vectors(AMOUNTS), vectors(LIMITS), vectors(AMOUNTS), vectors(AMOUNTS), vectors(AMOUNTS))
def test_beyond_names_what_the_sum_exceeds(
    ask: Resources, limit: Resources, held: Resources, more: Resources, less: Resources
) -> None:
    total = ask.clone().add(held).add(more).sub(less)
    assert beyond(ask, limit, held, more, less=less) == total.exceeding_where(limit, ask)
    assert within(ask, limit, held) is (not beyond(ask, limit, held))


@given(vectors(AMOUNTS), vectors(LIMITS), vectors(AMOUNTS), st.integers(0, 9))
def test_times_within_is_the_number_of_additions_one_after_the_other(
    ask: Resources, limit: Resources, held: Resources, k: int
) -> None:
    n, now = 0, held.clone()
    while n < k and not now.add(ask).exceeding_where(limit, ask):
        n += 1
    assert times_within(ask, limit, held, k) == n


@given(vectors(AMOUNTS), vectors(AMOUNTS))
def test_the_dominant_share_is_over_what_there_is_any_of(v: Resources, whole: Resources) -> None:
    shares = [v.get(n) / whole.get(n) for n in whole.names()]
    assert DominantShare(whole)(v) == max(shares, default=0.0)
