"""How many examples property tests try. The same ones every time, so a run in CI is as good as the last one.

``VCSCHEDULER_EXAMPLES=20`` multiplies them by 20 and draws new ones every time, for hunting.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_TIMES = int(os.environ.get("VCSCHEDULER_EXAMPLES", "0"))


def _profile(examples: int) -> settings:
    return settings(
        max_examples=examples * max(_TIMES, 1),
        derandomize=not _TIMES,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


#: For tests of a few hundredths of a second an example, and of a few tenths.
MANY = _profile(200)
SOME = _profile(60)
FEW = _profile(20)

#: Seeds of random scenes. What a seed gives is spread evenly, which shrinking draws would not be.
SEEDS = st.integers(0, 2**32 - 1)
