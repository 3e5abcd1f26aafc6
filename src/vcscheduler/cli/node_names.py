"""Many numbered names in little room: ``a100-[0-3] ×8, t4-7`` instead of one entry a node."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_NUMBERED = re.compile(r"(.*?)(\d+)", re.DOTALL)


def shortened(names: Iterable[str], limit: int = 12, thing: str = "node") -> str:
    """The names in order, successive numbers put together; beyond `limit` pieces only how many more there are."""
    return counted(dict.fromkeys(names, 1), limit, thing)


def counted(counts: Mapping[str, int], limit: int, thing: str = "node") -> str:
    """Like `shortened`, with how many there are of each: names are put together if their counts agree."""
    groups: dict[tuple[str, int], list[str]] = {}
    for name in sorted(counts, key=_natural):
        groups.setdefault((_split(name)[0], counts[name]), []).append(name)
    shown: list[str] = []
    rest = 0
    for (stem, count), names in groups.items():
        pieces = _runs(names)
        taken, limit = pieces[:limit], limit - len(pieces)
        rest += sum(len(run) for run in pieces[len(taken) :])
        if taken:
            shown.append(_text(stem, taken) + (f" ×{count}" if count > 1 else ""))
        limit = max(limit, 0)
    text = ", ".join(shown)
    return text if not rest else f"{text} and {rest:,} more {thing}{'' if rest == 1 else 's'}"


def _natural(name: str) -> tuple[str, int, str]:
    stem, number = _split(name)
    return stem, -1 if number is None else number, name


def _split(name: str) -> tuple[str, int | None]:
    """``("gpu-", 7)`` for ``gpu-7``."""
    match = _NUMBERED.fullmatch(name)
    return (match[1], int(match[2])) if match else (name, None)


def _runs(names: list[str]) -> list[list[str]]:
    """Names of one stem in order, cut where the numbers do not follow one another."""
    found: list[list[str]] = []
    last: int | None = None
    for name in names:
        number = _split(name)[1]
        if found and number is not None and last is not None and number == last + 1:
            found[-1].append(name)
        else:
            found.append([name])
        last = number
    return found


def _text(stem: str, runs: list[list[str]]) -> str:
    if len(runs) == 1 and len(runs[0]) == 1:
        return runs[0][0]
    numbers = [[name[len(stem) :] for name in run] for run in runs]
    return f"{stem}[{','.join(_span(run) for run in numbers)}]"


def _span(numbers: list[str]) -> str:
    return ",".join(numbers) if len(numbers) < 3 else f"{numbers[0]}-{numbers[-1]}"
