"""What unquoted scalars mean, row by row of the table (spec 02 §2.3), and what explicit tags make of them."""

import math

import pytest

from vcscheduler.documents import DocumentError, load_documents, plain_value


@pytest.mark.parametrize("text", ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"])
def test_true_words(text: str) -> None:
    assert plain_value(text) is True


@pytest.mark.parametrize("text", ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"])
def test_false_words(text: str) -> None:
    assert plain_value(text) is False


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null_words(text: str) -> None:
    assert plain_value(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10", 10),
        ("-3", -3),
        ("+3", 3),
        ("0", 0),
        ("-0", 0),
        ("0x1F", 31),
        ("0X1f", 31),
        ("-0x10", -16),
        ("017", 15),
        ("-017", -15),
        ("0o17", 15),
        ("0O17", 15),
        ("0b101", 5),
        ("-0b101", -5),
        ("1_000", 1000),
        ("1__0_", 10),
        ("0x_ff", 255),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615", 2**64 - 1),
        ("0000000000000000000000000000000000000000000000000000000000000000000000000000007", 7),
    ],
)
def test_integers(text: str, value: int) -> None:
    found = plain_value(text)
    assert (type(found), found) == (int, value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5", 1.5),
        (".5", 0.5),
        ("-.5", -0.5),
        ("2.", 2.0),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        ("1e+3", 1000.0),
        ("+1.5e3", 1500.0),
        ("1_000.5", 1000.5),
        ("08", 8.0),
        ("18446744073709551616", 2.0**64),
        ("-9223372036854775809", -(2.0**63)),
        ("+18446744073709551615", 2.0**64),
        (".inf", math.inf),
        ("+.Inf", math.inf),
        ("-.INF", -math.inf),
    ],
)
def test_floats(text: str, value: float) -> None:
    found = plain_value(text)
    assert (type(found), found) == (float, value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_not_a_number(text: str) -> None:
    found = plain_value(text)
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    "text",
    [
        "1:30",
        "100ms",
        "1Gi",
        "2026-01-02",
        "2026-01-02T03:04:05Z",
        "1.2.3",
        "1e",
        "e3",
        "0x",
        "0xg",
        "0b2",
        "0o8",
        "-",
        "+",
        ".",
        "..",
        "-.",
        ".e3",
        "._5",
        ".5_0",
        "_1",
        "1e400",
        "1" * 5000,
        "yEs",
        "tRue",
        "nULL",
        "inf",
        "NaN",
        "-.nan",
        "0x1p-2",
        "--1",
        "1 000",
        "١",
    ],
)
def test_everything_else_is_a_string(text: str) -> None:
    assert plain_value(text) == text


@pytest.mark.parametrize("quoted", ["'yes'", '"10"', "'~'", '"1e3"', "!!str 10", "! 10"])
def test_quoted_scalars_are_strings(quoted: str) -> None:
    assert isinstance(load_documents(f"a: {quoted}", "f")[0].value["a"], str)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!str yes", "yes"),
        ('!!int "10"', 10),
        ("!!float 1", 1.0),
        ('!!bool "off"', False),
        ("!!null ~", None),
        ("!!map {b: 1}", {"b": 1}),
        ("!!seq [1]", [1]),
    ],
)
def test_core_tags(text: str, value: object) -> None:
    found = load_documents(f"a: {text}", "f")[0].value["a"]
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("!!int x", "'x' cannot be read as !!int"),
        ("!!int 1.5", "'1.5' cannot be read as !!int"),
        ("!!float x", "'x' cannot be read as !!float"),
        ("!!bool 1", "'1' cannot be read as !!bool"),
        ("!!null x", "'x' cannot be read as !!null"),
        ("!!map [1]", "the tag !!map does not fit this value"),
        ("!!seq {a: 1}", "the tag !!seq does not fit this value"),
    ],
)
def test_core_tags_that_do_not_fit(text: str, message: str) -> None:
    with pytest.raises(DocumentError) as caught:
        load_documents(f"a: {text}", "f")
    assert str(caught.value) == f"f:1:4: {message}"
