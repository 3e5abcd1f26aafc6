"""Quantities: exact parsing, rounding away from zero, saturation, canonical printing (spec examples R1, R2)."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcscheduler.objects import (
    QuantityError,
    format_binary,
    format_decimal,
    format_milli,
    milli_value,
    parse_quantity,
    value,
)

MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("0", Fraction(0)),
        ("5.", Fraction(5)),
        (".5", Fraction(1, 2)),
        ("+3", Fraction(3)),
        ("-1.5", Fraction(-3, 2)),
        ("1500m", Fraction(3, 2)),
        ("1500u", Fraction(3, 2000)),
        ("7n", Fraction(7, 10**9)),
        ("2k", Fraction(2000)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("1E-2", Fraction(1, 100)),
        ("1E+2", Fraction(100)),
        ("1.5Gi", Fraction(1610612736)),
        ("10Ei", Fraction(MAX)),
        ("10E", Fraction(10**19)),
        ("0.1n", Fraction(1, 10**9)),
        ("-0.1n", Fraction(-1, 10**9)),
        ("1e-300", Fraction(1, 10**9)),
        (2, Fraction(2)),
        (0.1, Fraction(1, 10)),
        (1e-7, Fraction(1, 10**7)),
    ],
)
def test_parsing_is_exact_down_to_a_nano(text: str | int | float, exact: Fraction) -> None:
    assert parse_quantity(text) == exact


@pytest.mark.parametrize(
    ("text", "units", "milli"),
    [
        # R1
        ("1500m", 2, 1500),
        ("1.5Gi", 1610612736, 1610612736000),
        ("1Gi", 1073741824, 1073741824000),
        ("2", 2, 2000),
        ("4Mi", 4194304, 4194304000),
        ("110", 110, 110000),
        # R2
        ("0.0001", 1, 1),
        ("1.2", 2, 1200),
        ("1500u", 1, 2),
        # away from zero, also below it; held within int64
        ("-1.2", -2, -1200),
        ("-0.0001", -1, -1),
        ("100E", MAX, MAX),
        ("-100E", -(2**63), -(2**63)),
        ("9.3E", MAX, MAX),
        (2, 2, 2000),
        (2.5, 3, 2500),
    ],
)
def test_integers_are_rounded_away_from_zero_and_saturate(text: str | int | float, units: int, milli: int) -> None:
    assert (value(text), milli_value(text)) == (units, milli)


ALLOWED = (
    "allowed is a number with an optional suffix n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei "
    'or an exponent such as "1e3"'
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", f'"" is not a quantity: {ALLOWED}'),
        ("+", f'"+" is not a quantity: {ALLOWED}'),
        (".", f'"." is not a quantity: {ALLOWED}'),
        ("1 Gi", f'"1 Gi" is not a quantity: {ALLOWED}'),
        (" 1", f'" 1" is not a quantity: {ALLOWED}'),
        ("1_000", f'"1_000" is not a quantity: {ALLOWED}'),
        ("0x10", f'"0x10" is not a quantity: {ALLOWED}'),
        ("١", f'"١" is not a quantity: {ALLOWED}'),
        ("1zz", f'"1zz" is not a quantity: {ALLOWED}'),
        (float("inf"), f'"inf" is not a quantity: {ALLOWED}'),
        (True, f'"True" is not a quantity: {ALLOWED}'),
        ("1K", '"1K" is not a quantity: the suffix for 1000 is "k", for 1024 it is "Ki"'),
        ("4gi", '"4gi" is not a quantity: unknown suffix "gi", did you mean "Gi"?'),
        ("1e", '"1e" is not a quantity: unknown suffix "e", did you mean "E"?'),
        ("1e999", '"1e999" is not a quantity: the exponent must lie between -400 and 400'),
        ("1" * 300, f'"{"1" * 57}..." is not a quantity: too long'),
    ],
)
def test_what_is_no_quantity_is_refused_with_a_way_out(text: str | int | float, message: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text)
    assert str(caught.value) == message


def test_the_number_one_and_true_do_not_share_a_cache_entry() -> None:
    assert parse_quantity(1) == 1
    with pytest.raises(QuantityError):
        parse_quantity(True)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (format_milli(1500), "1500m"),
        (format_milli(2000), "2"),
        (format_milli(2_000_000), "2k"),
        (format_milli(0), "0"),
        (format_milli(-500), "-500m"),
        (format_decimal(Fraction(1, 10**9)), "1n"),
        (format_decimal(3_000_000), "3M"),
        (format_binary(1610612736), "1536Mi"),
        (format_binary(1 << 60), "1Ei"),
        (format_binary(1500), "1500"),
        (format_binary(1000), "1k"),
        (format_binary(-2048), "-2Ki"),
    ],
)
def test_printing_is_canonical(printed: str, expected: str) -> None:
    assert printed == expected


@given(st.integers(min_value=-MAX, max_value=MAX))
def test_printed_quantities_read_back_as_the_same_number(number: int) -> None:
    assert milli_value(format_milli(number)) == number
    assert value(format_binary(number)) == number
