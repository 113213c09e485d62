"""Go's text/template, by cases whose results are those of Go 1.26 itself with `missingkey=error`, integers of the data being int64."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from clusterwright.gotemplate import TemplateError, parse

UNPARSABLE = object()
UNEXECUTABLE = object()

DATA: dict[str, Any] = {
    "cluster": {"name": "c1"},
    "kubeadmControlPlane": {"name": "kcp1"},
    "random": "x7k2p",
    "one": 1,
    "zero": 0,
    "negative": -5,
    "float": 2.5,
    "large": 1234567.0,
    "small": 1e-06,
    "yes": True,
    "empty": "",
    "nil": None,
    "none": [],
    "list": [1, "two", None, [3, 4.5], {"k": "v"}],
    "map": {"z": 1, "a": None, "é": [True]},
    "numbers": [1, 22, 333],
    "truths": [0, 1, 0.0, 0.5, "", "a", False, True, None, [], [0], {}, {"a": 0}, -1],
    "markup": "<a href=\"x\">'&' =\\ é",
    "format": "%05d",
}

# fmt: off
TEXT = [
    ('plain text', 'plain text'),
    ('{{ .kubeadmControlPlane.name }}-{{ .random }}', 'kcp1-x7k2p'),
    ('{{.cluster.name}}-{{.random}}', 'c1-x7k2p'),
    ('x {{- .one -}} y', 'x1y'),
    ('x {{ .one -}}   y', 'x 1y'),
    ('x {{- 3}}{{-3}} y', 'x3-3 y'),
    ('a{{/* a comment */}}b', 'ab'),
    ('a {{- /* a comment */ -}} b', 'ab'),
    ('{{-  /* two blanks make no comment */}}', UNPARSABLE),
    ('{{ /* a blank makes no comment */ }}', UNPARSABLE),
    ('{{/* unclosed }}', UNPARSABLE),
    ('{{/* closed too late */ }}', UNPARSABLE),
    ('{{{.one}}}', UNPARSABLE),
    ('{{ .one', UNPARSABLE),
    ('{{ .one }', UNPARSABLE),
    ('}} {', '}} {'),
    ('{{}}', UNPARSABLE),
    ('{{"{{"}}{{`}}`}}', '{{}}'),
    ('a\n {{- .one -}} \n b', 'a1b'),
    ('{{ .one\n}}', '1'),
    ('{{/* two\nlines */}}', ''),
    ('{{ "two\nlines" }}', UNPARSABLE),
    ('{{ `two\nlines\r` }}', 'two\nlines'),
    ('', ''),
    (' \n', ' \n'),
]
VALUES = [
    ('{{ .random }} {{ $.random }} {{ .cluster.name }} {{ $.cluster.name }}', 'x7k2p x7k2p c1 c1'),
    ('{{ .nobody }}', UNEXECUTABLE),
    ('{{ .cluster.nobody }}', UNEXECUTABLE),
    ('{{ $.nobody }}', UNEXECUTABLE),
    ('{{ .random.nobody }}', UNEXECUTABLE),
    ('{{ .nil.nobody }}', UNEXECUTABLE),
    ('{{ .nil }}|{{ print .nil }}|{{ printf "%v" .nil }}', '<no value>|<nil>|<nil>'),
    ('{{ .list }} {{ .map }}', '[1 two <nil> [3 4.5] map[k:v]] map[a:<nil> z:1 é:[true]]'),
    ('{{ .float }} {{ .large }} {{ .small }} {{ .yes }} {{ .one }} {{ .negative }}', '2.5 1.234567e+06 1e-06 true 1 -5'),
    ('{{ (.cluster).name }} {{ (index .list 4).k }}', 'c1 v'),
    ('{{ .cluster .one }}', UNEXECUTABLE),
    ('{{ .one | .cluster }}', UNEXECUTABLE),
    ('{{ (1) 2 }}', UNEXECUTABLE),
    ('{{ .ключ }}', UNEXECUTABLE),
    ('{{ . | len }} {{ $ | len }}', '19 19'),
    ('{{ .one.}}', UNPARSABLE),
    ('{{ ..one }}', UNPARSABLE),
    ('{{ .one,.one }}', UNPARSABLE),
    ('{{ .one+1 }}', UNPARSABLE),
    ('{{ $x }}', UNPARSABLE),
    ('{{ "a".b }}', UNPARSABLE),
    ('{{ nil.b }}', UNPARSABLE),
]
LITERALS = [
    ('{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 017 }} {{ 1_000 }} {{ +5 }} {{ -5 }} {{ -0 }} {{ 0x_1 }} {{ 0_7 }}', '31 5 15 15 1000 5 -5 0 1 7'),
    (r"{{ 'a' }} {{ '\n' }} {{ '\'' }} {{ 'é' }} {{ '\x41' }} {{ '\u00e9' }}", '97 10 39 233 65 233'),
    ('{{ 1.5 }} {{ .5 }} {{ 1. }} {{ 1e3 }} {{ 1e6 }} {{ 123456789.0 }} {{ 100000.0 }} {{ 0.0001 }} {{ 0.00001 }} {{ 0x1p4 }} {{ 08.5 }} {{ 1_0.5 }}', '1.5 0.5 1 1000 1e+06 1.23456789e+08 100000 0.0001 1e-05 16 8.5 10.5'),
    ('{{ 0xE }} {{ +0xE }} {{ -0x1e }}', '14 14 -30'),
    ('{{ 1+2i }} {{ 2i }} {{ 1e+5-2.5i }} {{ printf "%.1f" 1+2i }} {{ if 0i }}yes{{ else }}no{{ end }}', '(1+2i) (0+2i) (100000-2.5i) (1.0+2.0i) no'),
    ('{{ 9223372036854775807 }} {{ -9223372036854775808 }}', '9223372036854775807 -9223372036854775808'),
    ('{{ 9223372036854775808 }}', UNEXECUTABLE),
    ('{{ if false }}{{ 9223372036854775808 }}{{ end }}accepted', 'accepted'),
    ('{{ 18446744073709551616 }}', UNPARSABLE),
    ('{{ -9223372036854775809 }}', UNPARSABLE),
    ('{{ 089 }}', UNPARSABLE),
    ('{{ 1_ }}', UNPARSABLE),
    ('{{ 1__0 }}', UNPARSABLE),
    ('{{ 0x }}', UNPARSABLE),
    ('{{ 1e999 }}', UNPARSABLE),
    ('{{ 0x1.8 }}', UNPARSABLE),
    ('{{ 12ab }}', UNPARSABLE),
    ('{{ 1+2 }}', UNPARSABLE),
    (r'{{ "a\tb\"\\\x41\101\u00e9\U0001F600" }} {{ `raw\n"` }} {{ len "\xff\xfe" }} {{ "\xc3" }}{{ "\xa9" }}', 'a\tb"\\AAé😀 raw\\n" 2 é'),
    (r'{{ "\xff" }}', '�'),
    (r'''{{ "\'" }}''', UNPARSABLE),
    (r'''{{ '\"' }}''', UNPARSABLE),
    ("{{ '' }}", UNPARSABLE),
    ("{{ 'ab' }}", UNPARSABLE),
    (r'{{ "\q" }}', UNPARSABLE),
    (r'{{ "\400" }}', UNPARSABLE),
    (r'{{ "\ud800" }}', UNPARSABLE),
    ('{{ "unclosed }}', UNPARSABLE),
    ('{{ `unclosed }}', UNPARSABLE),
    ('{{ true }} {{ false }}', 'true false'),
    ('{{ nil }}', UNEXECUTABLE),
    ('{{ print nil }}', '<nil>'),
]
PIPELINES = [
    ('{{ .one | printf "%d-%d" 2 }} {{ "x" | len }} {{ "a" | printf "%s" | len | printf "%03d" }}', '2-1 1 001'),
    ('{{ .one| }}', '1'),
    ('{{ | .one }}', UNPARSABLE),
    ('{{ 1 | 2 }}', UNPARSABLE),
    ('{{ .one | "a" }}', UNPARSABLE),
    ('{{ "a" "b" }}', UNEXECUTABLE),
    ('{{ print ( ) }}', UNPARSABLE),
    ('{{ (.one }}', UNPARSABLE),
    ('{{ .one) }}', UNPARSABLE),
    ('{{ print(.one) }}', UNPARSABLE),
    ('{{ print (print 1 2) (print 3) }}', '1 23'),
    ('{{ print (print 1).b }}', UNEXECUTABLE),
    ('{{ nobody }}', UNPARSABLE),
    ('{{ nobody .one }}', UNPARSABLE),
    ('{{ if nobody }}{{ end }}', UNPARSABLE),
]
VARIABLES = [
    ('{{ $x := 1 }}{{ $x }}{{ $x = 2 }}{{ $x }}{{ if true }}{{ $x = 3 }}{{ $x := 4 }}{{ $x }}{{ end }}{{ $x }}', '1243'),
    ('{{ $x := .cluster }}{{ $x.name }}', 'c1'),
    ('{{ $x = 1 }}', UNEXECUTABLE),
    ('{{ if $x := 1 }}{{ $x }}{{ end }}{{ $x }}', UNPARSABLE),
    ('{{ with $x := .cluster }}{{ $x.name }}{{ .name }}{{ end }}', 'c1c1'),
    ('{{ $x, $y := .list }}', UNPARSABLE),
    ('{{ $x.y := 1 }}', UNPARSABLE),
    ('{{ and true ($x := 1) }}{{ $x }}', '11'),
    ('{{ and false ($x := 1) }}{{ $x }}', UNEXECUTABLE),
    ('{{ $x := 1 }}{{ define "d" }}{{ $x }}{{ end }}', UNPARSABLE),
    ('{{ $x := 1 }}{{ block "b" . }}{{ $x }}{{ end }}', UNPARSABLE),
]
CONDITIONS = [
    ('{{ if .zero }}a{{ else if .empty }}b{{ else if .yes }}c{{ else }}d{{ end }}', 'c'),
    ('{{ range $v := .truths }}{{ if $v }}1{{ else }}0{{ end }}{{ end }}', '01010101001011'),
    ('{{ with .cluster }}{{ .name }}{{ $.random }}{{ end }}{{ with .nil }}x{{ else }}y{{ end }}{{ with .zero }}{{ else with .one }}W{{ . }}{{ end }}', 'c1x7k2pyW1'),
    ('{{ if }}{{ end }}', UNPARSABLE),
    ('{{ if .one }}', UNPARSABLE),
    ('{{ end }}', UNPARSABLE),
    ('{{ else }}', UNPARSABLE),
    ('{{ if .one }}{{ else }}{{ else }}{{ end }}', UNPARSABLE),
    ('{{ if .one }}{{ else with .one }}{{ end }}', UNPARSABLE),
    ('{{ if .nobody }}{{ end }}', UNEXECUTABLE),
]
RANGES = [
    ('{{ range .list }}<{{ . }}>{{ end }}', '<1><two><<no value>><[3 4.5]><map[k:v]>'),
    ('{{ range $i, $e := .list }}{{ $i }}:{{ $e }} {{ end }}', '0:1 1:two 2:<no value> 3:[3 4.5] 4:map[k:v] '),
    ('{{ range $e := .list }}{{ $e }}{{ end }}', '1two<no value>[3 4.5]map[k:v]'),
    ('{{ range $k, $v := .map }}{{ $k }}={{ $v }},{{ end }}', 'a=<no value>,z=1,é=[true],'),
    ('{{ range 3 }}{{ . }}{{ end }} {{ range .one }}{{ . }}{{ end }} {{ range $i := 2 }}{{ $i }}{{ end }} {{ range .negative }}x{{ else }}none{{ end }}', '012 0 01 none'),
    ('{{ range $i, $e := 3 }}{{ end }}', UNEXECUTABLE),
    ('{{ range .none }}x{{ else }}empty{{ end }}{{ range .nil }}x{{ else }}nil{{ end }}', 'emptynil'),
    ('{{ range .random }}{{ end }}', UNEXECUTABLE),
    ('{{ range .float }}{{ end }}', UNEXECUTABLE),
    ('{{ range .yes }}{{ end }}', UNEXECUTABLE),
    ('{{ range .list }}{{ if eq (print .) "two" }}{{ continue }}{{ end }}{{ . }}{{ if not . }}{{ break }}{{ end }};{{ end }}', '1;<no value>'),
    ('{{ break }}', UNPARSABLE),
    ('{{ range .list }}{{ break 1 }}{{ end }}', UNPARSABLE),
    ('{{ range .list }}{{ block "b" . }}{{ break }}{{ end }}{{ end }}', UNPARSABLE),
    ('{{ range .list }}{{ else if .one }}{{ end }}', UNPARSABLE),
    ('{{ range $i, $e, $f := .list }}{{ end }}', UNPARSABLE),
    ('{{ range $i, 1 := .list }}{{ end }}', UNPARSABLE),
    ('{{ $i := 0 }}{{ $e := 0 }}{{ range $i, $e = .list }}{{ end }}{{ $i }}{{ $e }}', '4map[k:v]'),
    ('{{ $e := .list }}{{ range $i, $e }}{{ $i }};{{ end }}', '1;two;<no value>;[3 4.5];map[k:v];'),
]
DEFINITIONS = [
    ('{{ define "d" }}[{{ . }}]{{ end }}{{ template "d" .one }}{{ template "d" }}', '[1][<no value>]'),
    ('{{ template `d` .cluster }}{{ define `d` }}{{ .name }}{{ $.name }}{{ end }}', 'c1c1'),
    ('{{ block "b" .cluster }}({{ .name }}){{ end }}{{ template "b" .cluster }}', '(c1)(c1)'),
    ('{{ template "nobody" }}', UNEXECUTABLE),
    ('{{ if false }}{{ template "nobody" }}{{ end }}accepted', 'accepted'),
    ('{{ template .one }}', UNPARSABLE),
    ('{{ define "d" }}1{{ end }}{{ define "d" }}2{{ end }}', UNPARSABLE),
    ('{{ define "d" }} {{ end }}{{ define "d" }}2{{ end }}{{ template "d" }}', '2'),
    ('{{ define "d" }}1{{ end }}{{ define "d" }} {{ end }}{{ template "d" }}', '1'),
    ('{{ define "d" }}{{ define "e" }}{{ end }}{{ end }}', UNPARSABLE),
    ('{{ if .one }}{{ define "d" }}{{ end }}{{ end }}', UNPARSABLE),
    ('{{ define "d" }}{{ else }}{{ end }}', UNPARSABLE),
    ('{{ define d }}{{ end }}', UNPARSABLE),
    ('{{ define "r" }}{{ template "r" }}{{ end }}{{ template "r" }}', UNEXECUTABLE),
    ('{{ define "sum" }}{{ range . }}<{{ template "one" . }}>{{ end }}{{ end }}{{ define "one" }}{{ printf "%v" . }}{{ end }}{{ template "sum" .list }}', '<1><two><<nil>><[3 4.5]><map[k:v]>'),
]
LOGIC = [
    ('{{ and 1 0 2 }} {{ or 0 "" "x" }} {{ and .nil .one.x }} {{ or 1 .nobody }} {{ or .nil nil }}', '0 x <no value> 1 <no value>'),
    ('{{ and 1 .nobody }}', UNEXECUTABLE),
    ('{{ and }}', UNEXECUTABLE),
    ('{{ 1 | and }} {{ 0 | or 0 }} {{ "x" | and 1 2 }}', '1 0 x'),
    ('{{ not 1 }} {{ not 0 }} {{ not .nil }}', 'false true true'),
    ('{{ not 1 2 }}', UNEXECUTABLE),
    ('{{ eq 1 1 }} {{ eq 1 2 1 }} {{ ne 1 2 }} {{ lt 1 2 }} {{ le "a" "b" }} {{ gt 2.5 1.5 }} {{ ge 1 1 }} {{ lt "Z" "a" }} {{ le 2 1 }}', 'true true true true true true true true false'),
    ('{{ eq .one 1 }} {{ eq .nil nil }} {{ eq nil nil }} {{ eq .one nil }} {{ ne .one nil }} {{ eq .list nil }} {{ eq (index "a" 0) 97 }}', 'true true true false true false true'),
    ('{{ eq 1 1.0 }}', UNEXECUTABLE),
    ('{{ eq 1 "1" }}', UNEXECUTABLE),
    ('{{ eq 1 1 "x" }}', 'true'),
    ('{{ eq 1 }}', UNEXECUTABLE),
    ('{{ eq .list .list }}', UNEXECUTABLE),
    ('{{ eq .map .list }}', UNEXECUTABLE),
    ('{{ lt true false }}', UNEXECUTABLE),
    ('{{ lt 1 }}', UNEXECUTABLE),
    ('{{ lt nil 1 }}', UNEXECUTABLE),
    ('{{ call .one }}', UNEXECUTABLE),
    ('{{ call }}', UNEXECUTABLE),
]
ELEMENTS = [
    ('{{ len "héllo" }} {{ len .list }} {{ len .map }} {{ len "" }}', '6 5 3 0'),
    ('{{ len 3 }}', UNEXECUTABLE),
    ('{{ len .nil }}', UNEXECUTABLE),
    ('{{ index .list 0 }} {{ index .list 3 1 }} {{ index .list 4 "k" }} {{ index "abc" 1 }} {{ index .map "nobody" }} {{ index .cluster "name" }} {{ index 1 }}', '1 4.5 v 98 <no value> c1 1'),
    ('{{ index .list 9 }}', UNEXECUTABLE),
    ('{{ index .list 5 }}', UNEXECUTABLE),
    ('{{ index .list -1 }}', UNEXECUTABLE),
    ('{{ index .list "a" }}', UNEXECUTABLE),
    ('{{ index .list 1.0 }}', UNEXECUTABLE),
    ('{{ index .map 1 }}', UNEXECUTABLE),
    ('{{ index .nil }}', UNEXECUTABLE),
    ('{{ index .one 1 }}', UNEXECUTABLE),
    ('{{ (index .map "nobody").x }}', UNEXECUTABLE),
    ('{{ slice .list 1 3 }} {{ slice "hello" 1 3 }} {{ slice .list 3 }} {{ slice "hello" 5 }} {{ slice .list 1 2 3 }}', '[two <nil>] el [[3 4.5] map[k:v]]  [two]'),
    ('{{ slice "abc" 1 2 3 }}', UNEXECUTABLE),
    ('{{ slice "abc" 2 1 }}', UNEXECUTABLE),
    ('{{ slice "abc" 4 }}', UNEXECUTABLE),
    ('{{ slice .list .one }}', UNEXECUTABLE),
    ('{{ slice .list (.one) }}', '[two <nil> [3 4.5] map[k:v]]'),
    ('{{ slice (slice .list 0 1) 0 3 }}', '[1 two <nil>]'),
    ('{{ slice (slice .list 0 1 2) 0 3 }}', UNEXECUTABLE),
    ('{{ slice .map 0 1 }}', UNEXECUTABLE),
    ('{{ slice "é" 0 1 | printf "%q" }}', r'"\xc3"'),
]
ESCAPES = [
    ('{{ html .markup }} {{ html .nil }} {{ html 1 2 }} {{ html nil "a" }}', r"&lt;a href=&#34;x&#34;&gt;&#39;&amp;&#39; =\ é &lt;no value&gt; 1 2 &lt;no value&gt;a"),
    (r'{{ js .markup }} {{ js "é\u200b\x01\n=" }} {{ js .list }}', r'''\u003Ca href\u003D\"x\"\u003E\'\u0026\' \u003D\\ é é\u200B\u0001\u000A\u003D [1 two \u003Cnil\u003E [3 4.5] map[k:v]]'''),
    ('{{ urlquery .markup }} {{ urlquery "é ~-_." 1 }}', '%3Ca+href%3D%22x%22%3E%27%26%27+%3D%5C+%C3%A9 %C3%A9+~-_.1'),
    ('{{ print 1 2 "a" 3 "b" nil nil }}|{{ println 1 "a" .nil }}|{{ print }}{{ html }}', '1 2a3b<nil> <nil>|1 a <nil>\n|'),
]
PRINTF = [
    ('{{ printf "%5d|%-5d|%05d|%+d|% d|%x|%X|%#x|%o|%#o|%O|%b|%#b" 42 42 42 42 42 42 42 42 42 42 42 42 42 }}', '   42|42   |00042|+42| 42|2a|2A|0x2a|52|052|0o52|101010|0b101010'),
    ('{{ printf "%c|%q|%U|%#U|%3c|%q|%+q|%c" 65 65 65 128512 \'x\' 10 233 -1 }}', r"A|'A'|U+0041|U+1F600 '😀'|  x|'\n'|'\u00e9'|�"),
    ('{{ printf "%.3d|%8.3d|%08.3d|%.0d|%+05d|%05d|%x|%08b" 7 7 7 0 7 -7 .negative .negative }}', '007|     007|     007||+0007|-0007|-5|-0000101'),
    (r'{{ printf "%s|%10s|%-10s|%05s|%.2s|%q|%x|% x|%#x|%X|%# X" "hé" "hé" "hé" "hé" "hé!" "hé\n" "hé" "hé" "hé" "hé" "hé" }}', r'hé|        hé|hé        |000hé|hé|"hé\n"|68c3a9|68 c3 a9|0x68c3a9|68C3A9|0X68 0XC3 0XA9'),
    (r'{{ printf "%q %+q %#q %#q %q" "é\x00\u200b\"" "é😀" "a" "a`b" "\xff" }}', r'"é\x00\u200b\"" "\u00e9\U0001f600" `a` "a`b" "\xff"'),
    ('{{ printf "%f|%.2f|%8.3f|%-8.1f|%08.2f|%+.1f|% f|%.0f" 3.14159 3.14159 3.14159 3.14159 -3.14159 3.14159 3.14159 2.5 }}', '3.141590|3.14|   3.142|3.1     |-0003.14|+3.1| 3.141590|2'),
    ('{{ printf "%e|%E|%.2e|%g|%G|%.3g|%.10g|%#g|%#.3g" 123456.789 123456.789 123456.789 1e-7 1e21 1234.5 0.1 1.0 1.0 }}', '1.234568e+05|1.234568E+05|1.23e+05|1e-07|1E+21|1.23e+03|0.1|1.00000|1.00'),
    ('{{ printf "%x|%X|%.2x|%b|%v|%+v|%5v|%g" 3.5 3.5 3.14159 3.5 3.5 3.5 3.5 100000.0 }}', '0x1.cp+01|0X1.CP+01|0x1.92p+01|7881299347898368p-51|3.5|3.5|  3.5|100000'),
    ('{{ printf "%t|%v|%6t|%-6t|%d" true false true true true }}', 'true|false|  true|true  |%!d(bool=true)'),
    ('{{ printf "%d" "a" }} {{ printf "%s" 5 }} {{ printf "%s" .one }} {{ printf "%z" 3 }} {{ printf "%5t" 3 }} {{ printf "%d" .nil }} {{ printf "%w" .map }} {{ printf "%p" 1 }}', '%!d(string=a) %!s(int=5) %!s(int64=1) %!z(int=3) %!t(int=    3) %!d(<nil>) %!w(map[string]interface {}=map[a:<nil> z:1 é:[true]]) %!p(int=1)'),
    ('{{ printf "%d" }} {{ printf "%d" 1 2 "x" nil }} {{ printf "%" }} {{ printf "%!" 1 }} {{ printf "%%|%5%" }} {{ printf "x%" 1 }}', '%!d(MISSING) 1%!(EXTRA int=2, string=x, <nil>) %!(NOVERB) %!!(int=1) %|% x%!(NOVERB)%!(EXTRA int=1)'),
    ('{{ printf "%[2]d %[1]d" 1 2 }} {{ printf "%[3]d" 1 }} {{ printf "%[x]d" 1 }} {{ printf "%[1]" 1 }} {{ printf "%[2]*[1]d" 1 5 }} {{ printf "%[1]2d" 1 }}', '2 1 %!d(BADINDEX) %!d(BADINDEX) %!(NOVERB)     1 %!d(BADINDEX)'),
    ('{{ printf "%*d|%-*d|%*d|%.*f|%*d|%.*d" 5 42 5 42 -5 42 2 3.14159 "x" 1 -1 2 }}', '   42|42   |42   |3.14|%!(BADWIDTH)1|%!(BADPREC)2'),
    ('{{ printf "%v %s %d %q %x" .list .list .list .list .list }}', r'''[1 two <nil> [3 4.5] map[k:v]] [%!s(int64=1) two <nil> [%!s(int64=3) %!s(float64=4.5)] map[k:v]] [1 %!d(string=two) <nil> [3 %!d(float64=4.5)] map[%!d(string=k):%!d(string=v)]] ['\x01' "two" <nil> ['\x03' %!q(float64=4.5)] map["k":"v"]] [1 74776f <nil> [3 0x1.2p+02] map[6b:76]]'''),
    ('{{ printf "%3d %v %+v %s" .numbers .map .map .map }}', '[  1  22 333] map[a:<nil> z:1 é:[true]] map[a:<nil> z:1 é:[true]] map[a:<nil> z:%!s(int64=1) é:[%!s(bool=true)]]'),
    ('{{ printf "%#v %#v %#v %#v %#v %#v" .list .map 1.0 "a" .nil 1 }}', '[]interface {}{1, "two", interface {}(nil), []interface {}{3, 4.5}, map[string]interface {}{"k":"v"}} map[string]interface {}{"a":interface {}(nil), "z":1, "é":[]interface {}{true}} 1 "a" <nil> 1'),
    ('{{ printf "%T %T %T %T %T %T %T %T" .list .map .one 1 "a" nil 1.5 (index "a" 0) }}', '[]interface {} map[string]interface {} int64 int string <nil> float64 uint8'),
    ('{{ printf .random }} {{ printf .format 1 }}', 'x7k2p 00001'),
    ('{{ printf .one }}', UNEXECUTABLE),
    ('{{ printf 5 }}', UNEXECUTABLE),
    ('{{ printf nil }}', UNEXECUTABLE),
    ('{{ printf }}', UNEXECUTABLE),
    ('{{ printf "%99999999d" 1 }}', '%!(NOVERB)%!(EXTRA int=1)'),
]
# fmt: on

GROUPS: dict[str, Any] = {
    "text": TEXT,
    "values": VALUES,
    "literals": LITERALS,
    "pipelines": PIPELINES,
    "variables": VARIABLES,
    "conditions": CONDITIONS,
    "ranges": RANGES,
    "definitions": DEFINITIONS,
    "logic": LOGIC,
    "elements": ELEMENTS,
    "escapes": ESCAPES,
    "printf": PRINTF,
}
CASES = [pytest.param(template, expected, id=f"{group}-{template}") for group, cases in GROUPS.items() for template, expected in cases]


@pytest.mark.parametrize(("template", "expected"), CASES)
def test_a_template_gives_what_go_gives(template: str, expected: object) -> None:
    if expected is UNPARSABLE:
        with pytest.raises(TemplateError):
            parse(template)
        return
    parsed = parse(template)

    if expected is UNEXECUTABLE:
        with pytest.raises(TemplateError):
            parsed.render(DATA)
    else:
        assert parsed.render(DATA) == expected


def test_a_template_is_rendered_any_number_of_times() -> None:
    template = parse("{{ $x := .name }}{{ range 2 }}{{ $x = print $x . }}{{ end }}{{ $x }}")

    assert [template.render({"name": name}) for name in ("a", "b", "a")] == ["a01", "b01", "a01"]


def test_frozen_data_are_maps_and_lists_too() -> None:
    data = MappingProxyType({"map": MappingProxyType({"b": 1, "a": (1, 2)})})

    assert parse("{{ .map }} {{ index .map.a 1 }} {{ range .map.a }}{{ . }}{{ end }}").render(data) == "map[a:[1 2] b:1] 2 12"


@pytest.mark.parametrize("data", [{"x": object()}, {"x": {1: 2}}, {"x": b"bytes"}])
def test_a_value_that_is_not_json_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(TemplateError):
        parse("{{ .x }}").render(data)


def test_lone_surrogates_do_not_reach_the_output() -> None:
    rendered = parse("\ud800{{ .x }}{{ len .x }}{{ printf `%q` .x }}").render({"x": "a\udfff"})

    assert rendered.encode()
    assert rendered.startswith("\ufffda\ufffd")


# ----------------------------------------------------------------------------------------------- functions


def test_functions_get_plain_values_and_come_before_those_of_go() -> None:
    functions: dict[str, Any] = {
        "upper": str.upper,
        "default": lambda fallback, value: value or fallback,
        "len": lambda _: "mine",
        "kind": lambda v: type(v).__name__,
    }
    template = parse(
        '{{ .name | upper }} {{ .nil | default "d" }} {{ len .name }} {{ kind .nil }} {{ kind .list }} {{ range .list }}{{ kind . }}{{ end }}',
        functions,
    )

    assert template.render({"name": "n", "nil": None, "list": [1]}) == "N d mine NoneType list int"


def test_an_and_of_the_callers_evaluates_all_its_arguments() -> None:
    with pytest.raises(TemplateError):
        parse("{{ and false .nobody }}", {"and": lambda *values: all(values)}).render({})


def test_a_function_named_break_takes_the_word_from_the_language() -> None:
    assert parse("{{ break }}", {"break": lambda: "broken"}).render({}) == "broken"


def _fail(_: object) -> str:
    raise KeyError("x")


@pytest.mark.parametrize("template", ["{{ fail 1 }}", "{{ fail }}", "{{ fail 1 2 }}"])
def test_an_exception_of_a_function_becomes_a_template_error(template: str) -> None:
    with pytest.raises(TemplateError, match="fail"):
        parse(template, {"fail": _fail}).render({})


# ----------------------------------------------------------------------------------------------- bounds


@pytest.mark.parametrize(
    "template",
    [
        "{{ range .huge }}{{ end }}",
        "{{ range .huge }}x{{ end }}",
        "{{ $x := `aaaaaaaa` }}{{ range 100 }}{{ $x = print $x $x }}{{ end }}",
        "{{ range .huge }}{{ $x := printf `%1000000d` 1 }}{{ end }}",
        "{{ range .huge }}{{ $x := printf `%q` $.long }}{{ end }}",
        "{{ range .huge }}{{ $x := eq $.long $.long }}{{ end }}",
        "{{ range .huge }}{{ range $.wide }}{{ break }}{{ end }}{{ end }}",
        "{{ range .huge }}{{ $x := slice (slice $.list 0) 0 }}{{ end }}",
        "{{ printf `" + "%1000000[1]d" * 1000 + "` 1 }}",
        "{{ printf `%1000000d` .list }}",
        "{{ print" + " $" * 10000 + " }}",
        "{{ define `r` }}{{ template `r` }}{{ end }}{{ template `r` }}",
        "{{ define `r` }}{{ if 1 }}{{ with . }}{{ range 2 }}{{ template `r` (print (print .)) }}{{ end }}{{ end }}{{ end }}{{ end }}{{ template `r` 1 }}",
        "x" * 2_000_000,
    ],
    ids=lambda template: template[:60],
)
def test_a_template_that_costs_too_much_is_refused(template: str) -> None:
    data = {"huge": 2**62, "long": "x" * 100_000, "list": list(range(10_000)), "wide": {str(i): i for i in range(10_000)}}
    parsed = parse(template)

    with pytest.raises(TemplateError, match=r"too|maximum"):
        parsed.render(data)


@pytest.mark.parametrize(("opening", "closing"), [("{{ if 1 }}", "{{ end }}"), ("{{ with 1 }}", "{{ end }}")])
def test_the_nesting_of_control_structures_is_bounded(opening: str, closing: str) -> None:
    assert parse(opening * 90 + "{{ if 1 }}x{{ end }}" + closing * 90) is not None
    with pytest.raises(TemplateError, match="deeply"):
        parse(opening * 5000 + closing * 5000)


def test_the_nesting_of_parentheses_is_bounded() -> None:
    assert parse("{{ " + "(" * 90 + "1" + ")" * 90 + " }}").render({}) == "1"
    with pytest.raises(TemplateError, match="deeply"):
        parse("{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}")
