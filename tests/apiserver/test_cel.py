"""CEL: what expressions mean, which do not compile, and that none can run away. The table was settled against kube-apiserver."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.apiserver.schema.celtypes import type_of
from clusterwright.apiserver.schema.rules import RuleSet
from clusterwright.apiserver.schema.structural import Node
from clusterwright.cel.metering import CostExceeded
from clusterwright.cel.program import CompileError, NotInstantiated, compile_expression
from clusterwright.cel.types import DYN, INT, STRING, Field, Type, list_of
from clusterwright.cel.values import CelError

TRUE = r"""
self.size() == 3
self.contains('b') && self.startsWith('a') && self.endsWith('c')
self.upperAscii() == 'ABC'
'abcabc'.replace('b','x',1) == 'axcabc'
'abcabc'.lastIndexOf('b') == 4
'hello'.substring(1,3) == 'el'
' x '.trim() == 'x'
'abc'.indexOf('a', 9) == -1 && 'abc'.indexOf('', 9) == 3 && 'abc'.lastIndexOf('c', 9) == -1 && 'abc'.lastIndexOf('', 9) == 3
[[1], [2, 3]].flatten() == [1, 2, 3]
!(self.charAt(99) in [])
'abc'.charAt(3) == ''
'a1b22'.findAll('[0-9]+') == ['1','22']
'a1b22'.find('[0-9]+') == '1'
'abc'.findAll('$') == ['']
'axb'.findAll('x*') == ['', 'x', '']
string(1000000.0) == '1e+06' && string(1.5) == '1.5' && string(100000.0) == '100000'
quantity('1Gi').isInteger() && quantity('2k').isInteger() && quantity('1e3').asInteger() == 1000
!quantity('1.5Gi').isInteger() && !quantity('1000m').isInteger() && !quantity('5Ei').isInteger()
quantity('1k').add(quantity('1')).isInteger() && !quantity('1').add(quantity('1000m')).isInteger() && quantity('3').sub(1).asInteger() == 2
url('https://u:p@h:80/a%2fb?x=1&y=2&x=3#f').getHost() == 'h:80'
url('https://h:80/p?x=1&y=2&x=3#f').getQuery() == {'x': ['1', '3'], 'y': ['2']}
url('https://[::1]:8080/p').getHostname() == '::1' && url('https://[::1]:8080/p').getPort() == '8080'
url('//h/p').getHost() == 'h' && url('//h/p').getEscapedPath() == '/p' && url('/a b').getEscapedPath() == '/a%20b'
'A,B'.split(',').map(x, x.lowerAscii()).join('-') == 'a-b'
[1,2,3].sum() == 6
[3,1,2].max() == 3 && [3,1,2].min() == 1
[1,2,2,3].indexOf(2) == 1 && [1,2,2,3].lastIndexOf(2) == 2
['a','b'].isSorted()
[].sum() == 0
[1,2,3].filter(x, x > 1).size() == 2
[1,2,3].map(x, x > 1, x * 2) == [4,6]
{'a':1}.exists(k, k == 'a')
'a' in {'a':1}
1 in [1,2]
1 + 2 * 3 - 4 / 2 % 3 == 5
-7 / 2 == -3
-7 % 3 == -1
int('12') == 12 && string(12) == '12' && double('1.5') == 1.5
type(1) == int && type('') == string && type([]) == list && type({}) == map && type(null) == null_type
timestamp('2020-02-03T04:05:06Z').getMonth() == 1
timestamp('2020-02-03T04:05:06Z').getDayOfWeek() == 1
timestamp('2020-02-03T04:05:06Z').getHours('+01:00') == 5
timestamp('2020-01-01T01:00:00Z') - timestamp('2020-01-01T00:00:00Z') == duration('60m')
duration('1h').getMilliseconds() == 3600000
string(duration('90s')) == '90s'
isURL('https://a.b/c') && !isURL('x y')
url('https://a.b:80/c?x=1&x=2').getHost() == 'a.b:80'
url('https://a.b:80/c?x=1&x=2').getQuery()['x'] == ['1','2']
url('https://a.b/c d').getEscapedPath() == '/c%20d'
isIP('1.2.3.4') && isIP('::1') && !isIP('1.2.3')
ip('8.8.8.8').isGlobalUnicast() && ip('127.0.0.1').isLoopback()
ip.isCanonical('::1') && !ip.isCanonical('0:0:0:0:0:0:0:1')
cidr('10.0.0.0/8').containsIP('10.1.1.1') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))
cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')
cidr('10.0.0.1/8').masked() == cidr('10.0.0.0/8')
quantity('1Gi').isGreaterThan(quantity('1G')) && quantity('500m').isLessThan(quantity('1'))
quantity('5').sub(2) == quantity('3')
semver('1.0.0-alpha').isLessThan(semver('1.0.0'))
semver('v1.2', true) == semver('1.2.0')
sets.contains([1,2,3],[1]) && sets.intersects([1],[1,2]) && sets.equivalent([1,2],[2,1,1])
'%s is %d and %.2f'.format(['x', 5, 1.5]) == 'x is 5 and 1.50'
'%x %X %o %b'.format([255, 255, 8, 5]) == 'ff FF 10 101'
optional.of(1).orValue(2) == 1
optional.ofNonZeroValue('').orValue('d') == 'd'
{'a':1}[?'b'].orValue(5) == 5
optional.of(2).optMap(x, x * 2).value() == 4
[1,2,3].all(i, v, v == i + 1)
[1,2].transformList(i, v, v * 10) == [10,20]
{'a':1}.transformMap(k, v, v + 1) == {'a':2}
format.dns1123Label().validate('ABC').hasValue()
true || 1 / 0 == 1
!(false && 1 / 0 == 1)
'\u00e9'.size() == 1
r'\d' == '\\d'
0x10 == 16
1u + 2u == 3u
dyn(1) == dyn(1.0)
'a' < 'b' && 1 < 2 && false < true
1 < 2.5
[[1],[2]].flatten() == [1,2]
""".strip().splitlines()

FAILS_AT_RUN_TIME = {
    "[1,2][5] == 1": "index out of bounds: 5",
    "{'a':1}['z'] == 1": "no such key: z",
    "1 / 0 == 1": "division by zero",
    "1 % 0 == 1": "modulus by zero",
    "9223372036854775807 + 1 > 0": "integer overflow",
    "quantity('x').isInteger()": "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    "semver('x').major() == 1": "No Major.Minor.Patch elements found",
    "optional.none().value() == 1": "optional.none() dereference",
    "ip('x') == ip('y')": 'IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP',
    **{
        f"url('{text}').getHost() == ''": f'URL parse error during conversion from string: parse "{text}": {why}'
        for text, why in {
            "": "empty url",
            "x": "invalid URI for request",
            "://x": "missing protocol scheme",
            "http://%zz": 'invalid URL escape "%zz"',
            "https://h:x/": 'invalid port ":x" after host',
        }.items()
    },
    "quantity('5Ei').asInteger() == 1": "cannot convert value to integer",
    "int(self) == 1": "type conversion error from 'string' to 'int'",
    "uint(self) == 1u": "type conversion error from 'string' to 'uint'",
    "double(self) == 1.0": "type conversion error from 'string' to 'double'",
    "timestamp(self) == timestamp(self)": "type conversion error from 'string' to 'google.protobuf.Timestamp'",
    "duration(self) == duration(self)": "type conversion error from 'string' to 'google.protobuf.Duration'",
    "self.substring(2, 1) == ''": "invalid substring range. start: 2, end: 1",
    "self.substring(9, 1) == ''": "invalid substring range. start: 9, end: 1",
    "[1].slice(-1, 1) == []": "cannot slice(-1, 1), negative indexes not supported",
    "[1].slice(1, 0) == []": "cannot slice(1, 0), start index must be less than or equal to end index",
    "[1].slice(0, 2) == []": "cannot slice(0, 2), list is length 1",
    "[[1]].flatten(-1) == []": "level must be non-negative",
    "lists.range(-1) == []": "lists.range: size must be non-negative, got -1",
    "lists.range(1000001) == []": "lists.range: size 1000001 exceeds maximum allowed (1000000)",
    "'%f'.format([dyn(self)]) == ''": "error during formatting: fixed-point clause can only be used on doubles, was given string",
    "semver('') == semver('1.0.0')": "Version string empty",
    "semver('v1.2.3') == semver('1.0.0')": 'Invalid character(s) found in major number "v1"',
    "semver('1.02.3') == semver('1.0.0')": 'Minor number must not contain leading zeroes "02"',
    "semver('1.2.3-01') == semver('1.0.0')": 'Numeric PreRelease version must not contain leading zeroes "01"',
    "semver('1.2.3-a_b') == semver('1.0.0')": 'Invalid character(s) found in prerelease "a_b"',
    "semver('1.2.3+') == semver('1.0.0')": "Build meta data is empty",
    "cidr('10.0.0.0/8').containsIP(self)": "no such overload",
    "dyn(1).value() == 3": "no such overload: value(int)",
    "[1][1] == 1 || [1][2] == 1": "index out of bounds: 1",
    "[1][5] in [[1]][7]": "index out of bounds: 5",
    **{
        f"ip('{text}').family() == 4": f'IP Address "{text}" parse error during conversion from string: ParseAddr("{text}"): {why}'
        for text, why in {
            "1.2": "IPv4 address too short",
            "1.2.3.4.5": "IPv4 address too long",
            "1.2.3.256": "IPv4 field has value >255",
            "1.2.3.04": "IPv4 field has octet with leading zero",
            "1..2.3": 'IPv4 field must have at least one digit (at ".2.3")',
            "1.2.x": 'unexpected character (at "x")',
            "%1": "missing IPv6 address",
            "::1%": "zone must be a non-empty string",
            "1::2::3": 'multiple :: in address (at ":3")',
            "1:2:3": "address string too short",
            "1:2:3:4:5:6:7:8:9": 'trailing garbage after address (at "9")',
            "12345::": 'each group must have 4 or less digits (at "12345::")',
            "g::": 'each colon-separated field must have at least one digit (at "g::")',
            "1:": 'colon must be followed by more characters (at ":")',
            "1:2:1.2.3.4": 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
        }.items()
    },
    **{
        f"cidr('{text}').prefixLength() == 8": f'{2 * "network address parse error during conversion from string: "}netip.ParsePrefix("{text}"): {why}'
        for text, why in {
            "10.0.0.0": "no '/'",
            "10.0.0.0/33": "prefix length out of range",
            "10.0.0.0/08": 'bad bits after slash: "08"',
            "x/8": 'ParseAddr("x"): unable to parse IP',
        }.items()
    },
}

DOES_NOT_COMPILE = {
    "self > 1": "ERROR: <input>:1:6: found no matching overload for '_>_' applied to '(string, int)'\n | self > 1\n | .....^",
    "self.foo == 1": "ERROR: <input>:1:5: type 'string' does not support field selection\n | self.foo == 1\n | ....^",
    "foo(self)": "ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')\n | foo(self)\n | ...^",
    "oldself == ''": "ERROR: <input>:1:1: undeclared reference to 'oldself' (in container '')\n | oldself == ''\n | ^",
    "[1, 'a'].size() == 2": "ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a'].size() == 2\n | ....^",
    "timestamp('x') == timestamp('x')": (
        "ERROR: <input>:1:11: invalid timestamp argument\n | timestamp('x') == timestamp('x')\n | ..........^\n"
        "ERROR: <input>:1:29: invalid timestamp argument\n | timestamp('x') == timestamp('x')\n | ............................^"
    ),
    '"a" "b"': 'ERROR: <input>:1:5: Syntax error: extraneous input \'"b"\' expecting <EOF>\n | "a" "b"\n | ....^',
}


@pytest.mark.parametrize("expression", TRUE)
def test_expressions_that_hold(expression: str):
    assert compile_expression(expression, {"self": STRING}).evaluate("abc") is True


@pytest.mark.parametrize(("expression", "text"), FAILS_AT_RUN_TIME.items())
def test_evaluation_fails_with_the_words_of_kubernetes(expression: str, text: str):
    program = compile_expression(expression, {"self": STRING})
    with pytest.raises(CelError) as caught:
        program.evaluate("abc")
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("int('x') == 1", "type conversion error from 'string' to 'int'"),
        ("bool('x')", "type conversion error from 'string' to 'bool'"),
        ("uint(-1) == 1u", "unsigned integer overflow"),
        ("int(1e30) == 1", "integer overflow"),
    ],
)
def test_constants_are_converted_before_anything_is_judged(expression: str, text: str):
    with pytest.raises(NotInstantiated) as caught:
        compile_expression(expression, {"self": STRING})
    assert str(caught.value) == text


@pytest.mark.parametrize("expression", ["[1, 2].flatten() == [1]", "['a'].flatten() == ['a']"])
def test_only_lists_of_lists_are_flattened(expression: str):
    with pytest.raises(CompileError, match="found no matching overload for 'flatten'"):
        compile_expression(expression, {"self": STRING})


@pytest.mark.parametrize(("expression", "text"), DOES_NOT_COMPILE.items())
def test_compile_errors_name_the_place(expression: str, text: str):
    with pytest.raises(CompileError) as caught:
        compile_expression(expression, {"self": STRING})
    assert str(caught.value) == text


BEGINNINGS = ["'['", "'{'", "'('", "'.'", "'-'", "'!'", "'true'", "'false'", "'null'"]
"""Tokens with which an expression may begin, in the order in which they are shown."""


def beginnings(also: str = "", behind: str = "") -> str:
    at = BEGINNINGS.index(behind) + 1 if behind else 0
    tokens = [*BEGINNINGS[:at], *([also] if also else []), *BEGINNINGS[at:]]
    return "{" + ", ".join([*tokens, "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER"]) + "}"


SYNTAX_ERRORS: list[tuple[str, list[tuple[int, str]]]] = [  # recorded from v1.36.1; # is "Syntax error: ", @ what may begin an expression
    ("self = 42", [(6, "#token recognition error at: '= '"), (8, "#extraneous input '42' expecting <EOF>")]),
    ("(self == 1", [(11, "#missing ')' at '<EOF>'")]),
    ("self.foo ==== 1", [(12, "#extraneous input '==' expecting @")]),
    ("'abc", [(1, "#token recognition error at: ''abc'"), (5, "#mismatched input '<EOF>' expecting @")]),
    ("self.foo(", [(10, "#mismatched input '<EOF>' expecting @)")]),
    ("1 +* 2", [(4, "#extraneous input '*' expecting @")]),
    ("[1,2", [(5, "#mismatched input '<EOF>' expecting {']', ','}")]),
    ("self && || true", [(9, "#extraneous input '||' expecting @")]),
    ("\\", [(1, "#token recognition error at: '\\'"), (2, "#mismatched input '<EOF>' expecting @")]),
    (
        "\"\\q\" == 'a'",
        [
            (1, "#token recognition error at: '\"\\q'"),
            (4, "#token recognition error at: '\" == 'a''"),
            (12, "#mismatched input '<EOF>' expecting @"),
        ],
    ),
    ("self == #", [(9, "#token recognition error at: '#'"), (10, "#mismatched input '<EOF>' expecting @")]),
    ("@", [(1, "#token recognition error at: '@'"), (2, "#mismatched input '<EOF>' expecting @")]),
    ("self.has(a", [(11, "#missing ')' at '<EOF>'")]),
    ("has(self)", [(5, "invalid argument to has() macro")]),
    ("self[", [(6, "#mismatched input '<EOF>' expecting @?")]),
    ("self[]", [(6, "#mismatched input ']' expecting @?")]),
    ("self..a", [(6, "#no viable alternative at input '..'")]),
    ("1 == 1;", [(7, "#token recognition error at: ';'")]),
    ("$x", [(1, "#token recognition error at: '$'")]),
    ("`a`", [(1, "#mismatched input '`a`' expecting @")]),
]


@pytest.mark.parametrize(("expression", "problems"), SYNTAX_ERRORS)
def test_syntax_errors_are_told_as_antlr_does(expression: str, problems: list[tuple[int, str]]):
    """Every one of them: text that is no token and one token too many are passed over."""
    with pytest.raises(CompileError) as caught:
        compile_expression(expression, {"self": INT})
    found = re.findall(r"^ERROR: <input>:1:(\d+): (.*)$", str(caught.value), re.MULTILINE)
    sets = {"@)": beginnings("')'", "'('"), "@?": beginnings("'?'", "'!'"), "@": beginnings()}
    wanted = []
    for column, text in problems:
        for short, whole in sets.items():
            text = text.removesuffix(f"expecting {short}") + (f"expecting {whole}" if text.endswith(f"expecting {short}") else "")
        wanted.append((str(column), f"Syntax error: {text[1:]}" if text.startswith("#") else text))
    assert found == wanted


def test_fields_are_known_by_their_schema_and_escaped_names():
    schema = {
        "type": "object",
        "properties": {
            "namespace": {"type": "string"},
            "foo-bar": {"type": "integer"},
            "when": {"type": "string", "format": "date-time"},
            "share": {"type": "number"},
        },
    }
    kind, _ = type_of(Node(schema))
    assert kind is not None
    value = {"namespace": "x", "foo-bar": 3, "when": "2020-01-01T00:00:00Z", "share": 2}

    def evaluate(expression: str) -> object:
        return compile_expression(expression, {"self": kind}).evaluate(value)

    assert evaluate("self.__namespace__ == 'x' && self.foo__dash__bar == 3")
    assert evaluate("self.when < timestamp('2021-01-01T00:00:00Z')")
    assert evaluate("self.share * 1.5 == 3.0"), "a whole JSON number in a number field is a double"
    with pytest.raises(CompileError, match="undefined field 'nope'"):
        evaluate("self.nope == 1")


def test_a_rule_cannot_run_without_limit():
    numbers = list(range(2000))
    program = compile_expression("self.all(x, self.all(y, self.all(z, x + y + z >= 0)))", {"self": list_of(INT)})
    with pytest.raises(CostExceeded):
        program.evaluate(numbers)


@pytest.mark.parametrize("expression", ["(" * 500 + "1" + ")" * 500, "!" * 5000 + "true", "1" + "+1" * 20000, "[" * 400, "a" * 200_000])
def test_monstrous_expressions_are_refused_or_answered(expression: str):
    with contextlib.suppress(CompileError, CelError):
        compile_expression(expression, {}).evaluate()


@given(st.text(alphabet="self.x()[]{}'\"+-*/%<>=!&|?:, 019abc_\\\n", max_size=60))
def test_no_text_crashes_the_compiler(text: str):
    with contextlib.suppress(CompileError, CelError):
        compile_expression(text, {"self": DYN}).evaluate({"x": [1]})


def test_uniqueness_rules_of_cluster_api():
    item = Type("object", fields={"name": Field("name", STRING)}, identity=1)
    program = compile_expression("self.all(x, self.exists_one(y, x.name == y.name))", {"self": list_of(item)})
    assert program.evaluate([{"name": "a"}, {"name": "b"}]) is True
    assert program.evaluate([{"name": "a"}, {"name": "a"}]) is False


class TestRules:
    """Rules in a schema: transitions, ratcheting, where errors point and what they show."""

    SCHEMA = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}]},
                    "low": {
                        "type": "integer",
                        "x-kubernetes-validations": [{"rule": "self < 5", "messageExpression": "'is ' + string(self)"}],
                    },
                    "items": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["k"],
                        "items": {
                            "type": "object",
                            "required": ["k"],
                            "properties": {"k": {"type": "string"}, "n": {"type": "integer"}},
                            "x-kubernetes-validations": [{"rule": "!has(oldSelf.n) || self.n >= oldSelf.n", "fieldPath": ".n"}],
                        },
                    },
                },
                "x-kubernetes-validations": [
                    {
                        "rule": "!oldSelf.hasValue() || has(self.low)",
                        "optionalOldSelf": True,
                        "reason": "FieldValueRequired",
                        "message": "low",
                    }
                ],
            }
        },
    }

    def errors(self, spec: dict[str, object], old: dict[str, object] | None = None) -> list[str]:
        rules = RuleSet(Node(self.SCHEMA))
        return [str(e) for e in rules.validate({"spec": spec}, None if old is None else {"spec": old})]

    def test_transition_rules_wait_for_an_old_value(self):
        assert self.errors({"fixed": "a"}) == []
        assert self.errors({"fixed": "b", "low": 1}, {"low": 1}) == []
        assert self.errors({"fixed": "b", "low": 1}, {"fixed": "a"}) == ['spec.fixed: Invalid value: "b": stays']

    def test_message_expressions_speak_of_the_value(self):
        assert self.errors({"low": 9}) == ["spec.low: Invalid value: 9: is 9"]

    def test_errors_of_unchanged_values_are_ignored(self):
        assert self.errors({"low": 9, "fixed": "a"}, {"low": 9, "fixed": "a"}) == []

    def test_items_of_map_lists_know_their_predecessors(self):
        old = {"low": 1, "items": [{"k": "a", "n": 5}, {"k": "b"}]}
        assert self.errors({"low": 1, "items": [{"k": "b"}, {"k": "a", "n": 4}]}, old) == [
            "spec.items[1].n: Invalid value: failed rule: !has(oldSelf.n) || self.n >= oldSelf.n"
        ]

    def test_optional_old_self_runs_on_create_too(self):
        assert self.errors({}) == []
        assert self.errors({}, {}) == ["spec: Required value: low"], "rules about the old value are never forgiven"
        assert self.errors({"fixed": "x"}, {"low": 1}) == ["spec: Required value: low"]


def test_order_does_not_matter_to_sets_and_map_lists():
    items = {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "n": {"type": "integer"}}}
    rule = [{"rule": "self == oldSelf"}]
    schema = {
        "type": "object",
        "properties": {
            "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}, "x-kubernetes-validations": rule},
            "map": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["k"],
                "items": items,
                "x-kubernetes-validations": rule,
            },
            "list": {"type": "array", "items": {"type": "string"}, "x-kubernetes-validations": rule},
        },
    }
    rules = RuleSet(Node(schema))

    def changed(**fields: object) -> list[str]:
        old = {"set": ["a", "b"], "map": [{"k": "a", "n": 1}, {"k": "b"}], "list": ["a", "b"]}
        return [e.field for e in rules.validate({**old, **fields}, old)]

    assert changed(set=["b", "a"], map=[{"k": "b"}, {"k": "a", "n": 1}]) == []
    assert changed(set=["b", "c"], map=[{"k": "b"}, {"k": "a", "n": 2}], list=["b", "a"]) == ["set", "map", "list"]


def test_rules_in_all_of_speak_of_the_structure():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "allOf": [
            {"x-kubernetes-validations": [{"rule": "self.a < 5", "message": "low"}]},
            {"properties": {"a": {"x-kubernetes-validations": [{"rule": "self > 0", "message": "high"}]}}},
        ],
    }
    rules = RuleSet(Node(schema))
    assert [str(e) for e in rules.validate({"a": 9})] == ["<nil>: Invalid value: low"]
    assert [str(e) for e in rules.validate({"a": -1})] == ["a: Invalid value: -1: high"]
