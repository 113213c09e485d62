"""Whatever a template does is charged for: no function does more than its steps pay for, and no execution may have many steps."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from clusterwright.gotemplate import Budget, Template, TemplateError, parse
from clusterwright.gotemplate.evaluator import Evaluation
from clusterwright.gotemplate.functions import BUILTINS
from clusterwright.gotemplate.metering import MAX_STEPS
from clusterwright.gotemplate.sprig import FUNCTIONS
from security.template_calls import calls

SECONDS_PER_STEP = 12e-6
"""CPU time that a step may stand for; one to three microseconds are usual on a machine that has nothing else to do."""
FREE = 0.02
"""Seconds that are within the noise of a busy machine."""


def exceeds(template: Template, data: Any, seconds: float, per_step: float = 0.0) -> str:
    """Tell by how much an execution exceeds its CPU time, in each of a few tries, as others may use the machine, too."""
    for _ in range(5):
        evaluation = Evaluation(template.trees, template.functions)
        began = time.thread_time()
        with contextlib.suppress(TemplateError):
            evaluation.run("template", data)
        took, steps = time.thread_time() - began, min(evaluation.meter.steps, MAX_STEPS)
        if took <= seconds + steps * per_step:
            return ""
    return f"{steps} steps took {took:.3f} s"


@pytest.mark.parametrize("name", [*FUNCTIONS, *BUILTINS])
def test_every_function_charges_what_it_costs(name: str) -> None:
    for arguments in calls(name, 16_000):
        data = {f"a{n}": argument for n, argument in enumerate(arguments)}
        template = parse(f"{{{{$x := {name} {' '.join(f'.{key}' for key in data)}}}}}", FUNCTIONS)

        assert not exceeds(template, data, FREE, SECONDS_PER_STEP), [repr(a)[:30] for a in arguments]


@pytest.mark.parametrize(
    "body",
    [
        "{{uniq (until 5000)}}",
        "{{uniq (until 90000)}}",
        "{{without (until 5000) 1 2 3}}",
        "".join(f"{{{{$v{n} := 1}}}}" for n in range(4000)) + "{{range until 9000}}{{$v0 = 1}}{{end}}",
        '{{$t := repeat 375000 "aB"}}{{snakecase $t}}{{kebabcase $t}}{{camelcase $t}}',
        "{{$x := list 1}}" + "{{$x = list $x $x}}" * 40 + "{{$x}}",
        "{{$x := list 1}}" + "{{$x = list $x $x}}" * 40 + "{{toJson $x}}",
        '{{$d := dict "a" 1}}{{$d = set $d "me" $d}}{{$d}}',
        '{{$d := dict "a" 1}}{{$d = set $d "me" $d}}{{toJson $d}}',
        "{{range until 100000}}{{range until 100000}}x{{end}}{{end}}",
        "{{range until 1000}}{{$x := until 100000}}{{end}}",
        '{{range until 1000}}{{regexMatch (printf "a%d|\\\\pL{500}" .) "x"}}{{end}}',
        '{{range until 1000}}{{regexMatch (printf "a%d.{900}c" .) (repeat 5000 "ab")}}{{end}}',
        '{{range until 1000}}{{toDate (printf "2006-%d" .) "2006-1"}}{{end}}',
    ],
)
def test_no_execution_takes_half_a_second(body: str) -> None:
    assert not exceeds(parse(body, FUNCTIONS), {}, 0.5)


def test_a_layout_that_names_a_part_twice_is_refused() -> None:
    with pytest.raises(TemplateError, match="names a part twice"):
        parse('{{mustToDate "2006-2006" "2020-2020"}}', FUNCTIONS).render({})


def test_templates_that_have_one_budget_share_it() -> None:
    template, budget = parse("{{range until 1000}}x{{end}}", FUNCTIONS), Budget(5000)

    template.render({}, budget=budget)
    template.render({}, budget=budget)

    with pytest.raises(TemplateError, match="too many steps"):
        template.render({}, budget=budget)
    assert budget.left < 0


def test_values_that_are_equal_are_found_by_their_type_and_content() -> None:
    data = {"l": [1.0, "1", True, 1.0, [1.0], [1.0], {"a": 1.0}, {"a": 1.0}, {"a": "1"}, None, None]}

    def made(body: str) -> str:
        return parse(body, FUNCTIONS).render(data)

    assert made("{{uniq .l | toJson}}") == '[1,"1",true,[1],{"a":1},{"a":"1"},null]'
    assert made('{{without .l 1.0 "1" | toJson}}') == '[true,[1],[1],{"a":1},{"a":1},{"a":"1"},null,null]'
    assert made('{{without .l (dict "a" 1.0) (list 1.0) | toJson}}') == '[1,"1",true,1,{"a":"1"},null,null]'
