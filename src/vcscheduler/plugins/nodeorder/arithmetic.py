"""Integer arithmetic of the scorers, as Go does it."""

from __future__ import annotations

import numpy as np

from vcscheduler.placement.rules import BoolArray, FloatArray, IntArray, ScoringFailed

MAX_SCORE = 100


def divide(a: IntArray, b: IntArray | int) -> IntArray:
    """Quotient rounded toward zero; ``b`` has no zeros."""
    quotient: IntArray = a // b
    inexact = (quotient * b != a) & ((a < 0) != (np.asarray(b) < 0))
    rounded_up: IntArray = quotient + inexact
    return rounded_up


def normalised(raw: IntArray, *, reverse: bool) -> IntArray:
    """``100 * raw / largest``, or 100 less that (spec 05 §5.2)."""
    largest = max(int(raw.max()), 0) if len(raw) else 0
    if largest == 0:
        return np.full(len(raw), MAX_SCORE, dtype=np.int64) if reverse else raw
    scaled = divide(MAX_SCORE * raw, largest)
    return MAX_SCORE - scaled if reverse else scaled


def checked(scores: IntArray, scorer: str) -> IntArray:
    """
    Raises:
        ScoringFailed: a score outside 0...100, which fails the whole batch (spec 05 §5.1).
    """
    if len(scores) and (scores.min() < 0 or scores.max() > MAX_SCORE):
        worst = int(scores.min()) if scores.min() < 0 else int(scores.max())
        raise ScoringFailed(f"{scorer} gives the score {worst}, not one within 0 and {MAX_SCORE}")
    return scores


def rounded(x: FloatArray) -> IntArray:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    away: BoolArray = np.abs(x - whole) >= 0.5
    found: IntArray = (whole + np.where(away, np.sign(x), 0.0)).astype(np.int64)
    return found
