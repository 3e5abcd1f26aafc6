"""The name somebody probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name closest to a misspelt one, whatever the case of its letters; None if none is close."""
    by_lower = {candidate.lower(): candidate for candidate in sorted(known)}
    close = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[close[0]] if close else None
