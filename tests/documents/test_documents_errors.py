"""Every way a text can be refused, with the exact place and the exact words."""

import pytest
import yaml

from vcscheduler.documents import DocumentError, load_documents

TAGS = "only !!str, !!int, !!float, !!bool, !!null, !!map, !!seq are"
COLON = "unexpected ':': quote a value that contains ': ', or check this line's indentation"
BLOCK = "expected a key of the mapping that begins in line 1: check indentation and quotes"

CASES: list[tuple[str | bytes, str]] = [
    ("a: 1\nb: 2\na: 3", "3:1: duplicate key 'a': first given in line 1"),
    ("a:\n  b: 1\n  b: 2", "3:3: duplicate key 'b': first given in line 2"),
    ('{"a": 1,\n "a": 2}', "2:2: duplicate key 'a': first given in line 1"),
    ("&k a: 1\n*k : 2", "2:1: duplicate key 'a': first given in line 1"),
    ("a: b: c", f"1:5: {COLON}"),
    ("a: 1\n b: 2", f"2:3: {COLON}"),
    ("a:\n\tb: 1", "2:1: a tab stands where indentation is expected: indent with spaces"),
    ("a: 1\n\tb: 2", "2:1: a tab stands where indentation is expected: indent with spaces"),
    ("a: 1\nb: 'x\n", "2:4: this quoted string is never closed"),
    ('a: "x', "1:4: this quoted string is never closed"),
    ("a: [1, 2\nb: 3", "2:2: expected ',' or ']' in the list that begins with '[' in line 1"),
    ("a: {b: 1\nc: d: 3", "2:2: expected ',' or '}' in the mapping that begins with '{' in line 1"),
    ("a: @x", "1:4: a plain value cannot begin with '@': quote it"),
    ("a: `x`", "1:4: a plain value cannot begin with '`': quote it"),
    ("a: %x", "1:4: a plain value cannot begin with '%': quote it"),
    ("a: ,", "1:4: expected a value here"),
    ("- a\nb: 1", "2:1: expected '- ' as in the list that begins in line 1: check the indentation"),
    ("a: - b", "1:4: a list item '- ' is not allowed here: put it on a line of its own"),
    ("a: 1\n- b", f"2:1: {BLOCK}"),
    ("a:\n  - b\n - c", f"3:2: {BLOCK}"),
    ("a: b\nc\n", "2:1: expected ':' after this key"),
    ('"a" b', "1:5: expected the end of the document or '---': check the indentation of this line"),
    ("%YAML 3.0\n---\na: 1", "1:1: only YAML 1.1 and 1.2 documents can be read"),
    ("a: *x", "1:4: the alias '*x' has no anchor '&x' before it"),
    ("a: &x 1\n---\nb: *x", "3:4: the alias '*x' has no anchor '&x' before it"),
    ("a: &x [*x]", "1:8: the alias '*x' stands inside the value that it names"),
    ("a: &x {b: {c: *x}}", "1:15: the alias '*x' stands inside the value that it names"),
    ("a: !!python/object/apply:f [x]", f"1:4: the tag !!python/object/apply:f is not supported here: {TAGS}"),
    ("a: !!binary aGk=", f"1:4: the tag !!binary is not supported here: {TAGS}"),
    ("a: !!timestamp 2026-01-02", f"1:4: the tag !!timestamp is not supported here: {TAGS}"),
    ("!!set {a: }", f"1:1: the tag !!set is not supported here: {TAGS}"),
    ("a: !Ref x", f"1:4: the tag !Ref is not supported here: {TAGS}"),
    ("!!python/name:os.system k: 1", f"1:1: the tag !!python/name:os.system is not supported here: {TAGS}"),
    ("? [a]\n: b", "1:3: a key must be a plain name, not a list or a mapping"),
    ("? {a: 1}\n: b", "1:3: a key must be a plain name, not a list or a mapping"),
    ("a: &x [1]\n*x : b", "2:1: a key must be a plain name, not a list or a mapping"),
    ("~: 1", "1:1: the key is null: write a name, in quotes if need be"),
    ("<<: 3", "1:5: '<<' merges a mapping or a list of mappings"),
    ("<<: [3]", "1:5: '<<' merges a mapping or a list of mappings"),
    ("<<: {a: 1}\n<<: {b: 1}", "2:1: a second '<<' in one mapping: merge a list instead"),
    ("[" * 101 + "]" * 101, "1:101: nesting deeper than 100 levels"),
    ("[" * 100_000 + "]" * 100_000, "1:1001: nesting deeper than 100 levels"),
    ('{"a":' * 101 + "1" + "}" * 101, "1:501: nesting deeper than 100 levels"),
    ("a: \0", "1:4: found a NUL character: this is not a YAML or JSON text"),
    ("a: 1\nb: x\x07", "2:5: found the control character U+0007: this is not a YAML or JSON text"),
    ("a: \ud800", "1:4: found the control character U+D800: this is not a YAML or JSON text"),
    (b"\x7fELF\x02\x01\x01\x00", "1:1: found the control character U+007F: this is not a YAML or JSON text"),
    (b"a: 1\nb: \xff", "2:4: byte 0xFF is not valid UTF-8"),
    (b"\xef\xbb\xbfa: \xc3", "1:4: byte 0xC3 is not valid UTF-8"),
    ("a: 1".encode("utf-16"), "1:1: the file is UTF-16 or UTF-32 text: save it as UTF-8"),
    ("a: 1".encode("utf-16-le"), "1:1: the file looks like UTF-16 or UTF-32 text: save it as UTF-8"),
    ("a: 1".encode("utf-16-be"), "1:1: the file looks like UTF-16 or UTF-32 text: save it as UTF-8"),
    ('{"a": 1 "b": 2}', "1:12: expected ',' or '}' in the mapping that begins with '{' in line 1"),
    ('{"a": 1}\n5', "2:1: expected the end of the document or '---': check the indentation of this line"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), CASES, ids=range(len(CASES)))
def test_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents(text, "dir/f.yaml")
    assert str(caught.value) == f"dir/f.yaml:{message}"
    assert f"{caught.value.line}:{caught.value.column}: {caught.value.message}" == message


def test_unknown_escape() -> None:
    with pytest.raises(DocumentError, match=r"^f:1:5: unknown escape in a double-quoted string"):
        load_documents('a: "\\q"', "f")


def test_the_reader_that_got_further_explains_broken_json() -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents('{"a": "\\ud83d\\ude00",\n "b": }', "f")
    assert str(caught.value) == "f:2:7: expecting value"


def test_alias_bomb_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for level in range(1, 20):
        lines.append(f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]")
    with pytest.raises(DocumentError, match=r"^f:6:\d+: aliases expand to more than 1,000,000 values$"):
        load_documents("\n".join(lines), "f")


def test_merge_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcscheduler.documents.loading.MAX_ALIASED_VALUES", 100)
    text = "base: &b {a: 1, b: 2, c: 3, d: 4}\n" + "".join(f"m{i}: {{<<: *b}}\n" for i in range(20))
    with pytest.raises(DocumentError, match="aliases expand to more than 100 values"):
        load_documents(text, "f")


@pytest.mark.parametrize(
    "text", ["a: b: c", "a: @x", "a: - b", "a: ,", "a: [1", "a: {b", 'a: "x', "a: b\nc\n", "a:\n\tb: 1", 'a: "\\q"']
)  # fmt: skip
def test_pythons_parser_finds_the_same_words(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents(text, "f")
    monkeypatch.setattr(yaml, "__with_libyaml__", False)
    with pytest.raises(DocumentError) as again:
        load_documents(text, "f")
    assert again.value.message == caught.value.message
