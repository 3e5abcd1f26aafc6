"""Parser complaints in plain words.

libyaml says what its state machine was looking for; a person needs to know what is wrong with the line.
Messages without an entry here keep the parser's words, on one line.
"""

import re

import yaml

from vcscheduler.documents.errors import DocumentError
from vcscheduler.documents.parser import MAX_DEPTH

_UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufffe\uffff]")


def position_of(text: str, offset: int) -> tuple[int, int]:
    """(line, column), from 1, of a character."""
    return text.count("\n", 0, offset) + 1, offset - (text.rfind("\n", 0, offset) + 1) + 1


def decode_text(text: str | bytes, source: str) -> str:
    """The text as characters a YAML parser accepts, without a byte order mark."""
    if isinstance(text, bytes):
        text = _decode_bytes(text, source)
    text = text.removeprefix("\ufeff")
    unreadable = _UNREADABLE.search(text)
    if unreadable is not None:
        character = unreadable[0]
        name = "a NUL character" if character == "\0" else f"the control character U+{ord(character):04X}"
        line, column = position_of(text, unreadable.start())
        raise DocumentError(source, line, column, f"found {name}: this is not a YAML or JSON text")
    return text


def _decode_bytes(data: bytes, source: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")):
        raise DocumentError(source, 1, 1, "the file is UTF-16 or UTF-32 text: save it as UTF-8")
    if len(data) >= 4 and (data[0:4:2] == b"\0\0" or data[1:4:2] == b"\0\0"):
        raise DocumentError(source, 1, 1, "the file looks like UTF-16 or UTF-32 text: save it as UTF-8")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8").removeprefix("\ufeff")
        line, column = position_of(before, len(before))
        byte = data[error.start]
        raise DocumentError(source, line, column, f"byte 0x{byte:02X} is not valid UTF-8") from None


def syntax_error(error: yaml.YAMLError, text: str, source: str) -> DocumentError:
    """The error to show for a complaint of the parser."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return DocumentError(source, 1, 1, " ".join(str(error).split()))
    mark = error.problem_mark or error.context_mark
    if error.context_mark is not None and _is_left_open(error):
        mark = error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    began = error.context_mark.line + 1 if error.context_mark is not None else line
    return DocumentError(source, line, column, _wording(error, _line(text, line)[column - 1 :], began))


def _is_left_open(error: yaml.MarkedYAMLError) -> bool:
    """Whether the mistake is where something begins: the parser complains where it gave up."""
    problem, context = error.problem or "", error.context or ""
    return "could not find expected ':'" in problem or ("quoted scalar" in context and "escape" not in problem)


def _line(text: str, line: int) -> str:
    lines = text.split("\n", line)
    return lines[line - 1] if len(lines) >= line else ""


def _wording(error: yaml.MarkedYAMLError, rest: str, began: int) -> str:
    problem = error.problem or ""
    context = error.context or ""
    if rest.startswith("\t"):
        return "a tab stands where indentation is expected: indent with spaces"
    if "mapping values are not allowed" in problem:
        return "unexpected ':': quote a value that contains ': ', or check this line's indentation"
    if "could not find expected ':'" in problem:
        return "expected ':' after this key"
    if "cannot start any token" in problem:
        return f"a plain value cannot begin with {rest[:1]!r}: quote it"
    if "block mapping" in context or "block mapping" in problem:
        return f"expected a key of the mapping that begins in line {began}: check indentation and quotes"
    if "block collection" in context or "block sequence" in context:
        return f"expected '- ' as in the list that begins in line {began}: check the indentation"
    if "flow sequence" in context:
        return f"expected ',' or ']' in the list that begins with '[' in line {began}"
    if "flow mapping" in context:
        return f"expected ',' or '}}' in the mapping that begins with '{{' in line {began}"
    if "quoted scalar" in context and ("end of stream" in problem or "document" in problem):
        return "this quoted string is never closed"
    if "unknown escape" in problem:
        return "unknown escape in a double-quoted string: write '\\\\' for a backslash, or use single quotes"
    if "document start" in problem:
        return "expected the end of the document or '---': check the indentation of this line"
    if "sequence entries are not allowed" in problem:
        return "a list item '- ' is not allowed here: put it on a line of its own"
    if "maximum nesting depth" in problem:
        return f"nesting deeper than {MAX_DEPTH} levels"
    if "node content" in problem:
        return "expected a value here"
    if "incompatible YAML document" in problem:
        return "only YAML 1.1 and 1.2 documents can be read"
    return " ".join(f"{problem} {context}".split())
