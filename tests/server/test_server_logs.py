"""One line a record, in two formats, and no credentials in either."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from vcscheduler.server.logs import LogLevel, masked, set_up


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("vcscheduler")
    kept = root.handlers, root.level, ours.handlers, ours.level, ours.propagate
    yield
    root.handlers, root.level, ours.handlers, ours.level, ours.propagate = kept


def logged(form: str, verbosity: int = 0) -> list[str]:
    out = io.StringIO()
    set_up(form, verbosity, out)
    log = logging.getLogger("vcscheduler.here")
    log.debug("why")
    log.info('pod %s: "no\nroom"', "ns/a")
    try:
        raise ValueError("token=abc")
    except ValueError:
        log.exception("failed")
    logging.getLogger("other").info("chatter of others")
    return out.getvalue().splitlines()


def test_logfmt() -> None:
    first, second = logged("logfmt")
    head, _, message = first.partition(" msg=")
    assert head.endswith(" level=info logger=vcscheduler.here")
    assert json.loads(message) == 'pod ns/a: "no\nroom"'
    assert " level=error " in second
    assert "ValueError: token=***" in second
    assert "abc" not in second


def test_json() -> None:
    first, second = (json.loads(line) for line in logged("json"))
    assert first["msg"] == 'pod ns/a: "no\nroom"'
    assert first["time"].endswith("Z")
    assert second["error"].splitlines()[-1] == "ValueError: token=***"


@pytest.mark.parametrize(("verbosity", "lines"), [(0, 2), (3, 2), (4, 3), (10, 3)])
def test_why_is_told_from_level_4_on(verbosity: int, lines: int) -> None:
    assert len(logged("logfmt", verbosity)) == lines


def test_a_later_level_takes_the_place_of_an_earlier_one() -> None:
    level = LogLevel(2)
    level.set_for(5, 60)
    level.set_for(7, 60)
    assert level.verbosity == 7
    assert logging.getLogger("vcscheduler").level == logging.DEBUG
    level.close()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer eyJhbGciOi.x.y", "Authorization: Bearer ***"),
        ("authorization: basic dXNlcjpw", "authorization: basic ***"),
        ('{"token": "abc", "x": 1}', '{"token": "***", "x": 1}'),
        ("password=hunter2&user=me", "password=***&user=me"),
        ("elasticsearch.password: hunter2", "elasticsearch.password: ***"),
        ("pod tokens/secretive is pending", "pod tokens/secretive is pending"),
    ],
)
def test_what_looks_like_a_credential_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
