"""Documents out of texts: YAML, JSON, several of them, aliases and merges, with either parser."""

import json

import pytest
import yaml

from vcscheduler.documents import DuplicateKey, iter_documents, load_documents, nearest_name
from vcscheduler.documents.errors import DocumentError


@pytest.fixture(params=["libyaml", "python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)
    elif not yaml.__with_libyaml__:
        pytest.skip("PyYAML was built without libyaml")


def values(text: str | bytes) -> list[object]:
    return [document.value for document in load_documents(text, "f")]


def test_plain_data() -> None:
    text = "a: {b: [1, two, 3.5, yes, ~]}\nc: |\n  line\nd: 2026-01-02\n"
    assert values(text) == [{"a": {"b": [1, "two", 3.5, True, None]}, "c": "line\n", "d": "2026-01-02"}]


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "\ufeff", b"\xef\xbb\xbf"])
def test_no_documents_in_an_empty_text(text: str | bytes) -> None:
    assert values(text) == []


def test_several_documents_know_their_lines() -> None:
    documents = load_documents("# first\na: 1\n---\n\n---\nb: 2\n", "f")
    assert [document.value for document in documents] == [{"a": 1}, None, {"b": 2}]
    assert (documents[0].line, documents[2].line) == (2, 6)
    assert {document.source for document in documents} == {"f"}


def test_a_later_mistake_leaves_earlier_documents_readable() -> None:
    documents = iter_documents("a: 1\n---\nb: : c\n", "f")
    first = next(documents)
    assert (first.value, first.mark(("a",))) == ({"a": 1}, (1, 4))
    with pytest.raises(DocumentError):
        next(documents)


def test_byte_order_mark_is_no_part_of_the_text() -> None:
    document = load_documents(b"\xef\xbb\xbfa: 1", "f")[0]
    assert (document.value, document.mark(("a",))) == ({"a": 1}, (1, 4))


def test_keys_are_the_text_as_written() -> None:
    assert values("on: 1\n0x10: 2\n1.50: 3\n'~': 4") == [{"on": 1, "0x10": 2, "1.50": 3, "~": 4}]


def test_aliases_and_repeated_anchors() -> None:
    assert values("a: &x [1]\nb: *x\nc: &x two\nd: *x\n*x : e") == [
        {"a": [1], "b": [1], "c": "two", "d": "two", "two": "e"}
    ]


def test_merge_keys_yield_to_the_mapping_and_to_earlier_sources() -> None:
    text = """
base: &base {a: 1, b: 1}
other: &other {b: 2, c: 2, d: 2}
merged:
  c: 3
  <<: [*base, *other]
inline:
  <<: {a: 9}
  a: 3
quoted:
  '<<': 1
"""
    (value,) = values(text)
    assert isinstance(value, dict)
    assert value["merged"] == {"a": 1, "b": 1, "c": 3, "d": 2}
    assert value["inline"] == {"a": 3}
    assert value["quoted"] == {"<<": 1}


def test_duplicate_keys_as_warnings() -> None:
    (document,) = load_documents("a: 1\nb:\n  c: 2\n  c: 3\na: 4", "f", duplicate_keys="warn")
    assert document.value == {"a": 4, "b": {"c": 3}}
    assert document.duplicates == (DuplicateKey("c", 4, 3, 3), DuplicateKey("a", 5, 1, 1))


def test_duplicate_keys_in_json_as_warnings() -> None:
    (document,) = load_documents('{"a": 1,\n "a": 2}', "f", duplicate_keys="warn")
    assert (document.value, document.duplicates) == ({"a": 2}, (DuplicateKey("a", 2, 2, 1),))


def test_json_streams_and_their_lines() -> None:
    documents = load_documents('{"a": 1}\n\n{"b":\n 2}[3]\n', "f")
    assert [(document.line, document.value) for document in documents] == [
        (1, {"a": 1}),
        (3, {"b": 2}),
        (4, [3]),
    ]
    assert documents[2].mark((0,)) == (4, 5)


def test_json_escapes() -> None:
    text = json.dumps({"smile": "\U0001f600", "slash": "\\/"}).replace("/", "\\/")
    assert values(text) == [{"smile": "\U0001f600", "slash": "\\/"}]


def test_numbers_in_json_follow_the_table() -> None:
    text = '{"a": 1e3, "b": 18446744073709551616, "c": 1e400, "d": -0, "e": 18446744073709551615}'
    assert values(text) == [{"a": 1000.0, "b": 2.0**64, "c": "1e400", "d": 0, "e": 2**64 - 1}]


def test_flow_style_yaml_is_not_mistaken_for_json() -> None:
    assert values("{a: 1, b: [x, 'y',],}\n---\nc: 2") == [{"a": 1, "b": ["x", "y"]}, {"c": 2}]


def test_hundred_levels_are_fine() -> None:
    value = values("[" * 100 + "]" * 100)[0]
    for _ in range(99):
        assert isinstance(value, list)
        value = value[0]
    assert value == []


def test_many_values_without_aliases_are_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcscheduler.documents.loading.MAX_ALIASED_VALUES", 10)
    assert values("- &a [1, 2, 3]\n" * 50 + "- *a\n")[0] == [[1, 2, 3]] * 51


def test_positions_of_values_and_keys() -> None:
    text = "base: &b\n  x: 1\na:\n  <<: *b\n  y: [p, {q: r}]\n  z:\n"
    (document,) = load_documents(text, "f")
    assert document.mark() == (1, 1)
    assert document.mark(("a", "y")) == (5, 6)
    assert document.mark(("a", "y", 1, "q")) == (5, 14)
    assert document.key_mark(("a", "y", 1, "q")) == (5, 11)
    assert document.key_mark(("a", "y")) == (5, 3)
    assert document.key_mark(("a", "y", 0)) == (5, 7)
    assert document.mark(("a", "x")) == (2, 6)
    assert document.key_mark(("a", "x")) == (2, 3)


def test_positions_of_what_is_not_there_are_those_of_the_nearest_parent() -> None:
    (document,) = load_documents("a:\n  b: 1\n", "f")
    assert document.mark(("a", "nope", 3)) == (2, 3)
    assert document.key_mark(("a", "nope")) == (1, 1)
    assert document.mark(("a", "b", 0)) == (2, 6)
    assert document.key_mark(("nope",)) == (1, 1)


def test_positions_in_json() -> None:
    (document,) = load_documents('\n{"a": [1,\n  {"b\\u0041": "x"}]}', "f")
    assert document.line == 2
    assert document.mark(("a", 1, "bA")) == (3, 15)
    assert document.key_mark(("a", 1, "bA")) == (3, 4)


def test_scalars_as_written() -> None:
    (document,) = load_documents("a: yes\nb: '0x10'\nc: [1]\nd: 0x10\ne:", "f")
    assert [document.scalar_text((key,)) for key in "abcde"] == ["yes", "0x10", None, "0x10", ""]
    assert document.scalar_text(("nope", 1)) is None
    (plain_json,) = load_documents('{"a": [1e3, "x"]}', "f")
    assert [plain_json.scalar_text(("a", index)) for index in range(2)] == ["1e3", "x"]


def test_nearest_names() -> None:
    known = ["enableJobOrder", "enableJobReady", "enabledVictim"]
    assert nearest_name("enabledJobOrder", known) == "enableJobOrder"
    assert nearest_name("ENABLEVICTIM", known) == "enabledVictim"
    assert nearest_name("weight", known) is None
