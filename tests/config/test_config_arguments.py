"""What the getters of `Arguments` take and what they leave at the caller's default (spec 02 §2.7)."""

import logging
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from vcscheduler.config import ArgumentError, Arguments
from vcscheduler.documents import load_documents


def arguments(text: str) -> Arguments:
    return Arguments(load_documents(text, "f")[0].value, owner="plugin binpack")


def one(text: str) -> Arguments:
    return arguments(f"k: {text}")


@pytest.mark.parametrize(("text", "value"), [("10", 10), ("-3", -3), ("0x10", 16), ("017", 15), ("0", 0)])
def test_int_takes_integers(text: str, value: int) -> None:
    assert one(text).get_int("k", 7) == value


@pytest.mark.parametrize("text", ["10.0", "1e3", '"10"', "true", "~", "[1]", "{a: 1}"])
def test_int_ignores_everything_else(text: str) -> None:
    assert one(text).get_int("k", 7) == 7


@pytest.mark.parametrize(("text", "value"), [("1.5", 1.5), ("2", 2.0), ("1e3", 1000.0), ("-1", -1.0)])
def test_float_takes_numbers(text: str, value: float) -> None:
    found = one(text).get_float("k", 0.5)
    assert (type(found), found) == (float, value)


@pytest.mark.parametrize("text", ['"1.5"', "yes", "~", "abc", "[]"])
def test_float_ignores_everything_else(text: str) -> None:
    assert one(text).get_float("k", 0.5) == 0.5


@pytest.mark.parametrize("text", ["true", "yes", "on", "y", '"1"', "t", "T", '"TRUE"', '"true"', '"True"'])
def test_bool_takes_booleans_and_gos_strings_for_true(text: str) -> None:
    assert one(text).get_bool("k", False) is True


@pytest.mark.parametrize("text", ["false", "no", "off", "n", '"0"', "f", "F", '"FALSE"', '"false"', '"False"'])
def test_bool_takes_booleans_and_gos_strings_for_false(text: str) -> None:
    assert one(text).get_bool("k", True) is False


@pytest.mark.parametrize("text", ["1", "0", "1.0", '"yes"', '"on"', "~", "tRUE"])
@pytest.mark.parametrize("default", [True, False])
def test_bool_ignores_everything_else(text: str, default: bool) -> None:
    assert one(text).get_bool("k", default) is default


@pytest.mark.parametrize(("text", "value"), [("abc", "abc"), ('"2"', "2"), ('""', ""), ("1h", "1h")])
def test_string_takes_strings(text: str, value: str) -> None:
    assert one(text).get_str("k", "d") == value


@pytest.mark.parametrize("text", ["2", "1.5", "yes", "~", "[a]"])
def test_string_ignores_everything_else(text: str) -> None:
    assert one(text).get_str("k", "d") == "d"


def test_example_4_of_the_specification() -> None:
    found = arguments('{w: 2, x: 2.0, s: "2", b: "T"}')
    assert found.get_int("w", 0) == 2
    assert found.get_int("x", 9) == 9
    assert found.get_float("w", 0.0) == 2.0
    assert found.get_float("s", 9.5) == 9.5
    assert found.get_bool("b", False) is True
    assert found.get_bool("w", True) is True
    assert found.get_str("s", "") == "2"
    assert found.get_str("w", "d") == "d"


def test_absent_keys_are_no_problem(caplog: pytest.LogCaptureFixture) -> None:
    found = Arguments()
    assert (found.get_int("a", 1), found.get_str("b", "x"), found.decode("c", int, 3)) == (1, "x", 3)
    assert (found.problems, caplog.records) == ((), [])


def test_unusable_values_are_logged_once_and_remembered(caplog: pytest.LogCaptureFixture) -> None:
    found = arguments("binpack.cpu: '5'\nok: 1")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            found.get_int("binpack.cpu", 1)
            found.get_int("ok", 1)
    message = "expected an integer, found the string '5': the default is used"
    assert [(problem.key, problem.message) for problem in found.problems] == [("binpack.cpu", message)]
    assert [record.getMessage() for record in caplog.records] == [
        f"argument 'binpack.cpu' of plugin binpack: {message}"
    ]


def test_arguments_are_a_read_only_mapping() -> None:
    found = arguments("a: 1\nb: [x]")
    assert (dict(found), len(found), "a" in found, found["b"]) == ({"a": 1, "b": ["x"]}, 2, True, ["x"])
    with pytest.raises(TypeError):
        found["a"] = 2  # type: ignore[index]


@dataclass
class Weights:
    cpu: int = 1
    gpu_memory: float = 0.5
    names: list[str] = field(default_factory=list)


class Rule(msgspec.Struct):
    resource: str
    weight: int = 1


@pytest.mark.parametrize(
    ("text", "wanted", "value"),
    [
        ("1.9", int, 1),
        ("-1.9", int, -1),
        ("3", float, 3.0),
        ("yes", bool, True),
        ("abc", str, "abc"),
        ("~", int, 0),
        ("~", str, ""),
        ("~", bool, False),
        ("~", list[int], []),
        ("~", dict[str, int], {}),
        ("~", int | None, None),
        ("4", int | None, 4),
        ("[1, 2.5]", list[int], [1, 2]),
        ("{a: 1, b: [x]}", dict[str, Any], {"a": 1, "b": ["x"]}),
        ("{a: {x: 1.5}}", dict[str, dict[str, int]], {"a": {"x": 1}}),
        ("{CPU: 2, gpuMemory: 1, other: x}", Weights, Weights(2, 1.0)),
        ("{names: [a]}", Weights, Weights(names=["a"])),
        ("~", Weights, Weights()),
        ("[{Resource: cpu}, {resource: gpu, weight: 5}]", list[Rule], [Rule("cpu"), Rule("gpu", 5)]),
    ],
)
def test_decode(text: str, wanted: Any, value: object) -> None:
    found = one(text).decode("k", wanted, None)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "wanted", "reason"),
    [
        ('"1"', int, "expected an integer, found string '1'"),
        ("true", int, "expected an integer, found boolean True"),
        (".inf", int, "expected an integer, found float inf"),
        ("1", str, "expected a string, found integer 1"),
        ('"true"', bool, "expected a boolean, found string 'true'"),
        ("1", list[int], "expected a list, found integer 1"),
        ("[1]", dict[str, int], "expected a mapping, found list [1]"),
        ("{a: [1, x]}", dict[str, list[int]], "a[1]: expected an integer, found string 'x'"),
        ("{cpu: x}", Weights, "cpu: expected an integer, found string 'x'"),
        ("[{weight: 5}]", list[Rule], "[0]: missing: resource"),
    ],
)
def test_decode_refuses_what_does_not_fit(text: str, wanted: Any, reason: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        one(text).decode("k", wanted, None)
    assert str(caught.value) == f"argument 'k' of plugin binpack: {reason}"
