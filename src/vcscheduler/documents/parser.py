"""The YAML event parser: libyaml where PyYAML was built with it, PyYAML's own otherwise.

Both turn text into the same events; only the events are used, none of PyYAML's typing or object construction.
"""

from typing import Any, Protocol

import yaml
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

MAX_DEPTH = 100
"""Levels of nesting that a document may have."""


class ParserProtocol(Protocol):
    def get_event(self) -> Any:
        """The next event. PyYAML's events carry their fields untyped, hence Any."""


class PythonParser(Reader, Scanner, Parser):
    """PyYAML's own parser, about ten times slower than libyaml."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)


def new_parser(text: str) -> ParserProtocol:
    """A parser at the beginning of `text`."""
    if yaml.__with_libyaml__:
        from yaml._yaml import CParser

        return CParser(text)
    return PythonParser(text)


def position(event: Any) -> tuple[int, int]:
    """(line, column), from 1, of the beginning of an event."""
    mark = event.start_mark
    return mark.line + 1, mark.column + 1
