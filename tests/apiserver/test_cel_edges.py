"""CEL at its edges: what no value may do, and what kube-apiserver v1.36.1 (cel-go v0.26.0) says there; the tables were recorded from it."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from typing import Any

import pytest

from clusterwright.apiserver.schema.rules import RuleSet
from clusterwright.apiserver.schema.structural import Node
from clusterwright.cel.catalogue import OVERLOADS
from clusterwright.cel.metering import CostExceeded
from clusterwright.cel.moments import EARLIEST, Duration, Timestamp
from clusterwright.cel.program import CompileError, compile_expression
from clusterwright.cel.types import BYTES, DOUBLE, DYN, INT, STRING, Type, list_of, map_of
from clusterwright.cel.values import NONE, CelError, Optional, TypeValue, UInt
from clusterwright.golang.quantities import parse_quantity

LONG = "9" * 5000
"""More digits than Python reads at once."""
VARIABLES: dict[str, Type] = {
    "s": STRING, "i": INT, "d": DOUBLE, "x": DYN, "b": BYTES, "l": list_of(DYN), "m": map_of(STRING, DYN),
}  # fmt: skip


def made(expression: str) -> Any:
    return compile_expression(expression, {}).evaluate()


AWKWARD = [
    None, True, -(2**63), 10**400, math.nan, math.inf, -1e308, "", "%.9999f", "%e%s%x", LONG, "1e999999999", f"1.1.1-{LONG}",
    f"1.1.1.1/{LONG}", "http://[::1", "\0", "\u0663", "0001-01-01T00:00:00Z", "-23:59", "(", b"\xff", [], [1, "a"], [{}, []],
    [math.nan, 1], {}, {1: 2}, UInt(2**64 - 1), NONE, Optional([1], True), Timestamp(EARLIEST * 10**9), Duration(-(2**63)),
    TypeValue("int"), made("quantity('1e1000')"), made("semver('18446744073709551615.0.0-1')"), made("ip('::1')"),
    made("cidr('1.2.3.4/32')"), made("url('http://a/?b=c')"), made("format.byte()"),
]  # fmt: skip


SEARCHES = ("matches", "find", "findAll")
"""Which take their time for a long pattern, by what they are charged for it."""


def assert_none_crashes(expression: str, variables: str, awkward: list[Any]) -> None:
    program = compile_expression(expression, dict.fromkeys(variables, DYN))
    for values in itertools.product(awkward, repeat=len(variables)):
        with contextlib.suppress(CelError):
            program.evaluate(*values)


@pytest.mark.parametrize("name", OVERLOADS)
def test_no_value_crashes_a_function(name: str) -> None:
    """Whatever objects, files and hooks hold: what a function does not take is an error of the expression, not of the server."""
    awkward = [v for v in AWKWARD if name not in SEARCHES or not isinstance(v, str) or len(v) < 1000]
    for receiver, count in {(o.receiver, len(o.params)) for o in OVERLOADS[name]}:
        variables = "abcd"[:count]
        arguments = variables[1:] if receiver else variables
        assert_none_crashes(
            f"{'a.' * receiver}{name}({', '.join(arguments)})", variables, awkward if count < 2 else awkward[:: 2 * count - 2]
        )


@pytest.mark.parametrize(
    "expression",
    [
        *(f"a {op} b" for op in ("+", "-", "*", "/", "%", "<", ">=", "==", "in", "&&", "||")),
        *("-a", "!a", "a.b", "a.?b", "a[b]", "a[?b]", "{a: b}", "{?'x': a}", "[?a]", "has(a.b)", "a ? b : b", "type(a)"),
        *(f"a.{macro}(x, b)" for macro in ("map", "filter", "all", "exists", "exists_one", "optMap", "optFlatMap")),
        *("a.transformMapEntry(x, y, b)", "a.transformMap(x, y, b, y)", "'%s'.format([a])", "'%x'.format([b])"),
    ],
)
def test_no_value_crashes_an_operator_or_macro(expression: str) -> None:
    assert_none_crashes(expression, "ab", AWKWARD[::2])
    assert_none_crashes(expression, "ab", AWKWARD[1::2])


HOLD = [
    # conversions
    ("int(s) == 5", {"s": "+5"}), ("bool(s)", {"s": "T"}), ("!bool(s)", {"s": "F"}), ("double(s) == 8.0", {"s": "0x_1p3"}),
    ("double(s) == 1000.5", {"s": "1_000.5"}), ("double(s) == 0.0", {"s": "0x1p-99999"}), ("int(d) == -1", {"d": -1.9}),
    # times and durations, to the nanosecond
    ("duration('1ns') < duration('2ns') && int(duration('5ns')) == 5 && string(duration('1ns')) == '0.000000001s'", {}),
    ("string(duration('123456789.123456789s')) == '123456789.12345679s' && string(duration('-1ms')) == '-0.001s'", {}),
    ("timestamp('2020-01-01T00:00:00.999999999Z') > timestamp('2020-01-01T00:00:00.999999998Z')", {}),
    ("timestamp('2020-01-01T00:00:00Z') + duration('1ns') > timestamp('2020-01-01T00:00:00Z')", {}),
    ("string(timestamp('2020-01-01T00:00:00.1234567891Z')) == '2020-01-01T00:00:00.123456789Z'", {}),
    ("string(timestamp('2020-01-01T00:00:00+01:00')) == '2020-01-01T00:00:00+01:00'", {}),
    ("timestamp('2020-01-01T00:00:00+01:00') == timestamp('2019-12-31T23:00:00Z')", {}),
    ("string(timestamp('0001-01-01T00:00:00Z')) == '0001-01-01T00:00:00Z'", {}),
    ("int(timestamp('1969-12-31T23:59:59.5Z')) == -1 && int(timestamp('9999-12-31T23:59:59.999999Z')) == 253402300799", {}),
    ("!optional.ofNonZeroValue(timestamp('0001-01-01T00:00:00Z')).hasValue()", {}),
    # zones
    *(
        (f"timestamp('{moment}').{part}(s) == {value}", {"s": zone})
        for moment, part, zone, value in [
            ("0001-01-01T00:00:00Z", "getHours", "-02:00", 22), ("0001-01-01T00:00:00Z", "getFullYear", "-02:00", 0),
            ("0001-01-01T00:00:00Z", "getDayOfYear", "-02:00", 365), ("0001-01-01T00:00:00Z", "getDayOfWeek", "-02:00", 0),
            ("0001-01-01T00:00:00Z", "getMonth", "-02:00", 11), ("9999-12-31T23:59:59Z", "getFullYear", "+02:00", 10000),
            ("2020-01-01T00:00:00Z", "getHours", "99:99", 4), ("2020-01-01T00:00:00Z", "getHours", "1:00", 1),
            ("2020-01-01T00:00:00Z", "getHours", "-1:30", 22), ("2020-01-01T00:00:00Z", "getHours", "1:-70", 23),
            ("2020-01-01T00:00:00Z", "getHours", "America/New_York", 19), ("2020-07-01T00:00:00Z", "getHours", "America/New_York", 20),
        ]
    ),
    # numbers
    ("d / -0.0 == -1.0 / 0.0", {"d": 1.0}), ("!(dyn(true) in {1: 2})", {}), ("!(x in m)", {"x": [1], "m": {}}),
    ("l[?x].hasValue() && l[x] == 7", {"l": [7], "x": 0.0}), ("l.min() == 1 && l.isSorted()", {"l": [1, "a"]}),
    ("quantity(s).compareTo(quantity('1n')) == 0", {"s": "1e-1000"}), ("quantity(s).compareTo(quantity('-1n')) == 0", {"s": "-0.1n"}),
    ("quantity(s).compareTo(quantity('9223372036854775807')) == 0", {"s": "9Ei"}), ("quantity(s) == quantity('0')", {"s": "e5"}),
    (f"quantity(s).sub(quantity('{10**40}')) == quantity('1')", {"s": str(10**40 + 1)}),
    ("semver(s).major() == -1", {"s": "18446744073709551615.0.0"}), ("!isSemver(s)", {"s": "18446744073709551616.0.0"}),
    # texts
    *(
        (f"s.format([{argument}]) == {text!r}", {"s": clause})
        for clause, argument, text in [
            ("%f", "12345.678", "12,345.678000"), ("%.2f", "-1234567.891", "-1,234,567.89"), ("%f", "-0.0", "0.000000"),
            ("%f", "double('NaN')", "NaN"), ("%f", "'Infinity'", "\u221e"), ("%e", "'-Infinity'", "    -\u221e"),
            ("%.3e", "12345.678", "1.234568\u202f\u00d7\u202f10\u2070\u2074"), ("%e", "double('NaN')", "   NaN"),
            ("%s", "[b'abc', 1.5, double('NaN'), null, type(1), true, 1u]", '[b"abc", 1.500000, "NaN", null, int, true, 1]'),
            ("%s", "[duration('1s'), timestamp('2020-01-01T00:00:00Z')]", '[duration("1s"), timestamp("2020-01-01T00:00:00Z")]'),
            ("%s", "{'b': 1.5, 'a': ['c']}", '{"a":["c"], "b":1.500000}'), ("%x", "-255", "-ff"), ("%.3d%%", "5", "5%"),
        ]
    ),
    ("strings.quote(s) == '\"\\\\t\\\\\"\\\\\\\\\"'", {"s": '\t"\\'}),
]  # fmt: skip

FAIL = [
    ("int(s)", {"s": LONG}, "type conversion error from 'string' to 'int'"),
    *(("uint(s)", {"s": text}, "type conversion error from 'string' to 'uint'") for text in (LONG, "1_0", "+1", "-1", " 1")),
    *(("uint(d)", {"d": number}, "unsigned integer overflow") for number in (-0.5, 1e300, 1.8446744073709552e19)),
    *(("double(s)", {"s": text}, "type conversion error from 'string' to 'double'") for text in (" 1", "1e999", "\u0663", "-nan", "0x1")),
    *(("timestamp(i)", {"i": number}, "timestamp overflow") for number in (10**18, 253402300800, -62135596801)),
    *(("timestamp(s)", {"s": text}, "timestamp overflow") for text in ("0000-01-01T00:00:00Z", "9999-12-31T23:00:00-02:00")),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1h')", {}, "timestamp overflow"),
    ("timestamp('0001-01-01T00:00:00Z') - duration('1h')", {}, "timestamp overflow"),
    ("timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')", {}, "integer overflow"),
    ("duration('290h') + duration(s)", {"s": "2562047h"}, "integer overflow"),
    *(
        ("timestamp('2020-01-01T00:00:00Z').getHours(s)", {"s": zone}, text)
        for zone, text in {
            "a:00": 'strconv.Atoi: parsing "a": invalid syntax', "Nowhere": "unknown time zone Nowhere",
            "../../etc/passwd": "time: invalid location name",
        }.items()
    ),
    ("uint('18446744073709551615') + 1u", {}, "unsigned integer overflow"), ("i / -1", {"i": -(2**63)}, "integer overflow"),
    ("uint('18446744073709551615') * 2u", {}, "unsigned integer overflow"), ("i % -1", {"i": -(2**63)}, "integer overflow"),
    ("x ? 1 : 2", {"x": 1}, "no such overload"), ("l.exists(a, a)", {"l": [1]}, "no such overload"),
    ("l.all(a, x)", {"l": [1], "x": 2}, "no such overload"), ("l.filter(a, a)", {"l": [1]}, "no such overload"),
    ("l.exists_one(a, a)", {"l": [1]}, "no such overload"), ("l.map(a, a, 1)", {"l": [1]}, "no such overload"),
    ("l.transformList(k, v, x, 1)", {"l": [1], "x": 3}, "no such overload"),
    ("l.transformMapEntry(k, v, {'a': v})", {"l": [1, 2]}, "insert failed: key a already exists"),
    ("l.transformMapEntry(k, v, v)", {"l": [1]}, "no such overload: cel.@mapInsert(map, int)"),
    ("l.sort()", {"l": [1, "a"]}, "list elements must have the same type"), ("l.sum()", {"l": [1, "a"]}, "no such overload"),
    ("l.sum()", {"l": [True]}, "no such overload: sum(list)"), ("l.max()", {"l": [{}]}, "no such overload: max(list)"),
    ("l.join(',')", {"l": [1]}, "no such overload: join(list, string)"), ("string(x)", {"x": None}, "no such overload: string(null_type)"),
    ("l[x]", {"l": [1], "x": 1.5}, "unsupported index value 1.5 in list"), ("m[x]", {"m": {"a": 1}, "x": True}, "no such key: true"),
    ("l[x]", {"l": [1], "x": "a"}, "unsupported index type 'string' in list"),
    ("quantity(s)", {"s": "1e99999999999999999999"}, "unable to parse quantity's suffix"),
    ("quantity(s)", {"s": "--5"}, "unable to parse quantity's suffix"),
    ("semver(s)", {"s": "1.1.1-18446744073709551616"}, 'strconv.ParseUint: parsing "18446744073709551616": value out of range'),
    ("s.find(s)", {"s": "("}, "Illegal regex: error parsing regexp: missing closing ): `(`"),
    ("s.matches(s)", {"s": "("}, "error parsing regexp: missing closing ): `(`"),
    *(
        (f"s.format([{argument}])", {"s": clause}, text)
        for clause, argument, text in [
            ("%d", "double('NaN')", "error during formatting: decimal clause can only be used on integers, was given double"),
            ("%d", "null", "error during formatting: decimal clause can only be used on integers, was given null_type"),
            ("%f", "1", "error during formatting: fixed-point clause can only be used on doubles, was given int"),
            ("%o", "true", "error during formatting: octal clause can only be used on integers, was given bool"),
            ("%s", "[optional.of(1)]", "error during formatting: no formatting function for optional_type"),
            ("%s", "{1.5: 2}", "error during formatting: no formatting function for map key of type double"),
            ("%q", "1", 'could not parse formatting clause: unrecognized formatting clause "q"'),
            ("%", "1", "unexpected end of string"), ("%d %d", "1", "index 1 out of range"),
            ("%.5", "1", "could not parse formatting clause: error while parsing precision: could not find end of precision specifier"),
        ]
    ),
]  # fmt: skip

REFUSED = {
    LONG: "1:1: invalid int literal", f"{LONG}u": "1:1: invalid uint literal", f"-{LONG}": "1:1: invalid int literal",
    "18446744073709551616u": "1:1: invalid uint literal", "1e999 > 1.0": "1:1: invalid double literal",
    "\u0663 + 1": "1:1: Syntax error: token recognition error at: '\u0663'", "1\v+ 1": "1:2: Syntax error: token recognition error at: '\v'",
    "timestamp(253402300800)": "1:11: invalid timestamp argument",
    "'\\ud800'": "1:1: invalid unicode code point", "'\\U00110000'": "1:1: invalid unicode code point",
    "b'\\u00e9'": "1:1: unable to unescape string", "'\\400'": "1:1: Syntax error: token recognition error at: ''\\4'",
    "'\\u+123'": "1:1: Syntax error: token recognition error at: ''\\u+'", "'\\x_1'": "1:1: Syntax error: token recognition error at: ''\\x_'",
    "-duration('1s')": "1:1: found no matching overload for '-_' applied to '(duration)'",
    "[true].sum()": "1:11: found no matching overload for 'sum' applied to 'list(bool).()'",
    "[[1], [2]].sort()": "1:16: found no matching overload for 'sort' applied to 'list(list(int)).()'",
    "l[double('NaN')]": "1:2: found no matching overload for '_[_]' applied to '(list(dyn), double)'",
    "'%d'.format([1, 2])": "1:12: too many arguments supplied to string.format (expected 1, got 2)",
    "'%d'.format([])": "1:12: index 0 out of range",
    "'%d'.format([s])": "1:14: error during formatting: decimal clause can only be used on integers, was given string",
    "'%q'.format([1.5])": '1:12: could not parse formatting clause: unrecognized formatting clause "q"',
}  # fmt: skip


def evaluated(expression: str, values: dict[str, Any]) -> Any:
    return compile_expression(expression, VARIABLES).evaluate(*(values.get(name) for name in VARIABLES))


@pytest.mark.parametrize(("expression", "values"), HOLD)
def test_true_expressions_hold(expression: str, values: dict[str, Any]) -> None:
    assert evaluated(expression, values) is True


@pytest.mark.parametrize(("expression", "values", "text"), FAIL)
def test_failing_expressions_fail(expression: str, values: dict[str, Any], text: str) -> None:
    with pytest.raises(CelError) as caught:
        evaluated(expression, values)
    assert str(caught.value) == text


@pytest.mark.parametrize(("expression", "text"), REFUSED.items(), ids=lambda text: text[:40])
def test_invalid_expressions_do_not_compile(expression: str, text: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_expression(expression, VARIABLES)
    assert str(caught.value).startswith(f"ERROR: <input>:{text}\n")


def test_digits_that_a_format_asks_for_are_paid_for() -> None:
    with pytest.raises(CostExceeded):
        evaluated("s.format(l)", {"s": "%.900000f" * 200, "l": [1.5] * 200})


@pytest.mark.parametrize("rule", ["self < 5", "self + 1 > 0", "-self < 0", "self > 0 ? true : false"])
def test_null_is_not_a_number(rule: str) -> None:
    node = Node({"type": "object", "properties": {"n": {"type": "integer", "nullable": True}}, "x-kubernetes-validations": [
        {"rule": rule.replace("self", "self.n")}]})  # fmt: skip

    errors = RuleSet(node).validate({"n": None})

    assert ["no such overload" in e.detail for e in errors] == [True]


def test_a_time_that_go_does_not_read_is_the_fault_of_the_object() -> None:
    node = Node({"type": "object", "properties": {
        "when": {"type": "string", "format": "date-time", "x-kubernetes-validations": [{"rule": "self > timestamp('2020-01-01T00:00:00Z')"}]},
    }})  # fmt: skip

    errors = RuleSet(node).validate({"when": "2021-01-01t00:00:00z"})

    assert [e.detail.split(":")[0] for e in errors] == ["Invalid date-time formatted string 2021-01-01t00"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [("1e-3", "1e-3"), ("1.5e3", "1500"), ("6.037", "6.037"), ("2.1", "2100m"), ("+5Gi", "+5Gi"), ("7.6Ei", "8762203435012037017600m"), ("1e6", "1e6"), ("-0.1n", "-1n"), ("9Ei", "9223372036854775807"), ("1" * 40, "1" * 40),
     ("0.5Ki", "512"), ("1e999", "1e999"), ("1e-999", "1e-9")],
)  # fmt: skip
def test_quantities_are_canonical_whatever_their_length(text: str, canonical: str) -> None:
    assert parse_quantity(text).canonical() == canonical


@pytest.mark.parametrize("text", ["1e999999", "1e9999999999", LONG, f".{LONG}", f"1e{LONG}", f"{LONG}Ki", f"1e-{LONG}"])
def test_no_quantity_takes_long(text: str) -> None:
    began = time.process_time()

    with contextlib.suppress(ValueError):
        parse_quantity(text).canonical()

    assert time.process_time() - began < 1.0  # by far: one of these took minutes
