"""Templates come from users: none takes for ever, and none takes all memory, whatever functions it calls on whatever it made."""

from __future__ import annotations

import contextlib
import resource
import time

import pytest

from clusterwright.gotemplate import TemplateError, parse
from clusterwright.gotemplate.sprig import FUNCTIONS

_TEXT = '{{$t := repeat 500000 "a"}}'
_TWICE = "{{$x := list 1 2}}" + "{{$x = list $x $x}}" * 40
_MAPS = '{{$x := dict "k" "v"}}{{$y := dict "k" "v"}}' + '{{$x = dict "a" $x "b" $x}}{{$y = dict "a" $y "b" $y}}' * 40

BOMBS = {
    "indent": '{{indent 1000000 (repeat 1000000 "\\n")}}',
    "replace": _TEXT + '{{replace "a" $t $t}}',
    "replace nothing": _TEXT + '{{replace "" $t $t}}',
    "join": _TEXT + "{{join $t (until 100000)}}",
    "wrap": _TEXT + "{{wrapWith 1 $t $t}}",
    "regexReplaceAll": _TEXT + '{{regexReplaceAll "a" $t $t}}',
    "shuffle": _TEXT + "{{shuffle $t}}",
    "concat": "{{$l := until 100000}}" + "{{$l = concat $l $l}}" * 20 + "{{len $l}}",
    "toJson": _TWICE + "{{toJson $x}}",
    "toPrettyJson": _TWICE + "{{mustToPrettyJson $x}}",
    "deepEqual": _TWICE + _TWICE.replace("$x", "$y") + "{{deepEqual $x $y}}",
    "merge": _MAPS + "{{$z := merge $x $y}}",
    "derivePassword": '{{range until 40000}}{{derivePassword 1 "long" "p" "u" "s"}}{{end}}',
    "durationRound": '{{durationRound (repeat 500000 "1")}}',
    "semverCompare": '{{semverCompare (printf "1%s!" (repeat 300000 " ")) "1.0.0"}}',
    "semver": '{{semver (repeat 5000 "9")}}',
    "printf": '{{printf (repeat 100000 "%1000000d") 1}}',
    "regexMatch": _TEXT + '{{regexMatch "(a*)*b" $t}}',
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_template_exceeds_its_budget(name: str) -> None:
    template = parse(BOMBS[name], FUNCTIONS)
    memory, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()

    with contextlib.suppress(TemplateError):
        assert len(template.render({})) <= 1 << 20

    assert time.process_time() - began < 2.0  # most of these took hours, or all memory
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 300_000  # kB


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('{{toJson (dict "b" (list 1 "x" nil) "a" (dict) "c" (list))}}', '{"a":{},"b":[1,"x",null],"c":[]}'),
        ('{{toPrettyJson (dict "b" (list 1 (dict "k" "<")) "a" (dict) "c" (list))}}',
         '{\n  "a": {},\n  "b": [\n    1,\n    {\n      "k": "\\u003c"\n    }\n  ],\n  "c": []\n}'),
        ('{{merge (dict "a" (dict "x" 1)) (dict "a" (dict "x" 2 "y" 3) "b" 4) (dict "b" 5) | toJson}}', '{"a":{"x":1,"y":3},"b":4}'),
        ('{{mergeOverwrite (dict "a" (dict "x" 1)) (dict "a" (dict "x" 2)) (dict "a" (dict "x" 3)) | toJson}}', '{"a":{"x":3}}'),
        ('{{deepEqual (list 1 (dict "a" "b")) (list 1 (dict "a" "b"))}} {{deepEqual (list 1) (list 2)}}', "true false"),
        ('{{replace "" "-" "ab"}} {{join "," (list 1 2)}} {{indent 2 "a\\nb"}} {{shuffle "hello"}}', "-a-b- 1,2   a\n  b llheo"),
        ('{{durationRound "2h10m5s"}} {{duration "95"}}', "2h 1m35s"),
    ],
)  # fmt: skip
def test_every_bound_reports_its_effect(text: str, made: str) -> None:
    assert parse(text, FUNCTIONS).render({}) == made
