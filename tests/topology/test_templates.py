"""Templates of patches: the function library, YAML as Go reads it, and what variables can be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from clusterwright import gotemplate
from clusterwright.golang.yaml import BadYaml, to_json
from clusterwright.gotemplate.sprig import FUNCTIONS
from clusterwright.topology.patches.values import BadValue, is_enabled, value_of, variable_value

DATA: dict[str, Any] = {
    "i": 4.0,
    "z": 0.0,
    "s": "abc",
    "e": "",
    "n": None,
    "a": ["x", "y"],
    "o": {"b": 1.0, "a": "x"},
    "v": "v1.30.1",
    "big": 1000000.0,
}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ('{{ add .i "3" }}', "7"),
        ("{{ div -7 2 }}", "-3"),
        ("{{ mod -7 2 }}", "-1"),
        ("{{ add 1 2.9 }}", "3"),
        ("{{ round 2.567 1 }}", "2.6"),
        ('{{ int "x" }}', "0"),
        ('{{ int "010" }}', "8"),
        ('{{ default "d" .z }}', "d"),
        ("{{ .missing | quote }}", ""),
        ("{{ quote .s .i .n }}", '"abc" "4"'),
        ('{{ cat "a" 1 .n "b" }}', "a 1 b"),
        ("{{ coalesce .e .n .s }}", "abc"),
        ('{{ .a | join "," }}', "x,y"),
        ('{{ toJson "<" }}{{ toRawJson "<" }}', '"\\u003c""<"'),
        ("{{ toJson .big }} {{ toJson 1e-7 }} {{ toJson 1e21 }}", "1000000 1e-7 1e+21"),
        ('{{ toPrettyJson (dict "a" (list 1)) }}', '{\n  "a": [\n    1\n  ]\n}'),
        ('{{ (split "." "a.b")._1 }}', "b"),
        ('{{ get .o "zz" }}', ""),
        ('{{ index .o "zz" }}', "<no value>"),
        ("{{ .n.x.y }}", "<no value>"),
        ("{{ (semver .v).Minor }}", "30"),
        ('{{ (semver "1.2.3").Compare (semver "1.3.0") }}', "-1"),
        ('{{ if (semver "1.2.3").LessThan (semver "1.2.4") }}y{{ end }}', "y"),
        ('{{ semver "1.30" }}', "1.30.0"),
        ('{{ semverCompare "~1.30" "v1.30.1-rc.1" }}', "false"),
        ('{{ semverCompare ">=1.30.0-0" "v1.30.1-rc.1" }}', "true"),
        ('{{ semverCompare ">=1.29.0, <1.30.0 || 1.30.1" .v }}', "true"),
        ('{{ semverCompare "1.2 - 1.4.5" "1.4.5" }}', "true"),
        ('{{ semverCompare "!=1.30.x" .v }}', "false"),
        ('{{ semverCompare ">1" "1.9.0" }}', "false"),
        ('{{ semverCompare "^0.2.3" "0.3.0" }}', "false"),
        ("{{ trunc -2 .s }}", "bc"),
        ('{{ len "äö" }}', "4"),
        ('{{ regexReplaceAll "a(.)" "abac" "${1}-" }}', "b-c-"),
        ('{{ regexSplit "z+" "pizza" -1 }}', "[pi a]"),
        ('{{ merge (dict "a" 1) (dict "a" 2 "b" 3) }}', "map[a:1 b:3]"),
        ("{{ until 3 }}", "[0 1 2]"),
        ("{{ typeOf .i }} {{ typeOf (list) }} {{ kindOf .o }}", "float64 []interface {} map"),
        ('{{ dig "b" "c" "def" (dict "b" (dict "c" 5)) }}', "5"),
        ('{{ nindent 2 "a\\nb" }}', "\n  a\n  b"),
        ('{{ kebabcase "FirstName" }} {{ snakecase "HTTPServer" }} {{ camelcase "http_server" }}', "first-name http_server HttpServer"),
        ('{{ duration "95" }}', "1m35s"),
        ("x-{{ .big }}", "x-1e+06"),
        ('{{ b64dec "YWI=" }} {{ b64dec "Y\\nWI=" }}', "ab ab"),
        ('{{ b64dec "YWJj!A==" }}', "illegal base64 data at input byte 4"),
        ('{{ b64dec "YWJjZA" }}', "illegal base64 data at input byte 4"),
        ('{{ b64dec "YWJj=" }}', "illegal base64 data at input byte 4"),
        ('{{ b64dec "YW=" }}', "illegal base64 data at input byte 3"),
        ('{{ b64dec "YWI=YQ==" }}', "illegal base64 data at input byte 4"),
        ('{{ b32dec "MFRGG" }}', "illegal base32 data at input byte 0"),
        ('{{ b32dec "MF8=====" }}', "illegal base32 data at input byte 2"),
    ],
)
def test_functions_give_what_they_give_in_go(template: str, text: str) -> None:
    assert gotemplate.parse(template, FUNCTIONS).render(DATA, strict=False) == text


@pytest.mark.parametrize(
    "template",
    [
        '{{ trimPrefix "v" .i }}',
        '{{ semverCompare ">=1.2" .missing }}',
        "{{ eq .i 4 }}",
        "{{ div 1 0 }}",
        '{{ fail "no" }}',
        "{{ .s.x }}",
        "{{ .s.Minor 1 }}",
        '{{ genCA "x" 1 }}',
        "{{ randInt 1 9 }}",
        "{{ first .s }}",
        "{{ first .missing }}",
        '{{ trunc (add 1 1) "abc" }}',
        '{{ semverCompare "nonsense" "1.2.3" }}',
        '{{ toJson .o | trunc "3" }}',
    ],
)
def test_inputs_that_go_refuses_are_refused(template: str) -> None:
    with pytest.raises(gotemplate.TemplateError):
        gotemplate.parse(template, FUNCTIONS).render(DATA, strict=False)


@pytest.mark.parametrize("name", ["now", "env", "uuidv4", "randAlpha", "getHostByName", "toYaml", "include"])
def test_functions_that_read_the_environment_do_not_exist(name: str) -> None:
    with pytest.raises(gotemplate.TemplateError, match="not defined"):
        gotemplate.parse(f"{{{{ {name} }}}}", FUNCTIONS)


def test_every_function_answers_or_refuses_whatever_it_is_given() -> None:
    for name in FUNCTIONS:
        for arguments in ("", ".n", ".s", ".i", ".a", ".o", ".s .s", ".i .i", "1 .s", ".o .o", ".o .s", "1 1 .s", ".s .s .s", ".a .a"):
            template = gotemplate.parse(f"{{{{ {name} {arguments} }}}}", FUNCTIONS)
            try:
                template.render({**DATA, "o": dict(DATA["o"])}, strict=False)
            except gotemplate.TemplateError:
                continue


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.30", 1.3),
        ("y", True),
        ("Off", False),
        ("010", 8),
        ("0o17", 15),
        ("1_000", 1000),
        ("12:30", "12:30"),
        ("2020-01-01", "2020-01-01"),
        ("", None),
        ("# nothing", None),
        ("<no value>", "<no value>"),
        ("a\nb", "a b"),
        ("- &x 1\n- *x", [1, 1]),
        ("<<: {a: 1}\nb: 2", {"a": 1, "b": 2}),
        ("{1: a, true: b}", {"1": "a", "true": "b"}),
        ("a: 1\n---\n[", {"a": 1}),
        ("{a: 1, a: 2}", {"a": 2}),
        ("!!str 5", "5"),
    ],
)
def test_yaml_is_read_as_go_reads_it(text: str, value: Any) -> None:
    assert to_json(text) == value


@pytest.mark.parametrize("text", [".inf", "\ta: 1", "a: b: c", "[1", "{[a]: 1}", "[" * 5000, "*x"])
def test_input_that_is_not_yaml_or_json_is_refused(text: str) -> None:
    with pytest.raises(BadYaml):
        to_json(text)


def test_aliases_cannot_become_gigabytes() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]

    with pytest.raises(BadYaml):
        to_json("\n".join(lines))


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("nope", 'variable "nope" does not exist'),
        ("o.x", 'variable "o.x" does not exist: failed to lookup segment "x"'),
        ("o.", 'variable "o." does not exist: failed to lookup segment ""'),
        ("a[", 'variable "a[" is invalid: failed to parse path segment "a["'),
        ("o.b]", 'variable "o.b]" has invalid syntax: failed to parse path segment "b]"'),
        ("a[-1]", 'variable "a[-1]" is invalid: invalid array index -1 in path segment "a[-1]"'),
        ("a[2]", 'variable "a[2]" is invalid: array does not have index 2'),
        ("a[0][1]", 'variable "a[0][1]" is invalid: failed to parse path segment "a[0][1]"'),
        ("a[0]x", 'variable "a[0]x" is invalid: failed to parse path segment "a[0]x"'),
    ],
)
def test_missing_paths_are_reported_with_their_end(path: str, text: str) -> None:
    with pytest.raises(BadValue) as refused:
        variable_value(DATA, path)

    assert str(refused.value) == text


def test_paths_lead_into_lists_and_objects() -> None:
    assert variable_value(DATA, "a[1]") == "y"
    assert variable_value(DATA, "a.0") == "x"
    assert variable_value(DATA, "n") is None
    assert variable_value(DATA, "o") == {"b": 1.0, "a": "x"}


def test_enabled_if_is_true_in_yaml_and_nothing_else() -> None:
    assert [c for c in ("", "true", "yes", " on # c", "1", '"true"', "{{ .nope }}", "[true]") if is_enabled(c, DATA)] == [
        "",
        "true",
        "yes",
        " on # c",
    ]


def test_a_template_that_changes_its_data_changes_nothing_for_the_next() -> None:
    variables = {"o": {"a": "x"}}

    value_of({"valueFrom": {"template": '{{ set .o "b" 1 | toJson }}'}}, variables)

    assert variables == {"o": {"a": "x"}}
