"""The rehearsal places pods, so that it has used what placing needs."""

from __future__ import annotations

from vcscheduler.server.rehearsal import rehearse


def test_a_gang_is_bound_and_nothing_is_left_of_it() -> None:
    assert (rehearse(), rehearse()) == (3, 3)
