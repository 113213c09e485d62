"""Templates as clusterctl reads them. What comes out of each was seen with clusterctl itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from clusterwright.cli.flags import FLAVORS
from clusterwright.cli.main import main
from clusterwright.golang import envsubst

VALUES = {"A": "abc", "C": "XYZ", "P": "a/b/c/b", "V": "v1.2", "E": ""}
CASES = [
    ("${A}", "abc"),
    ("${A:=x}", "abc"),
    ("${E:=x}", "x"),
    ("${U:=x}", "x"),
    ("${U:-x y}", "x y"),
    ("${U=x}", "x"),
    ("${U:=${A}-z}", "abc-z"),
    ('${U:="quoted"}', '"quoted"'),
    ("${U:=a:b}", "a:b"),
    ("$${A}", "${A}"),
    ("$A $$A $$ ${A}", "$A $A $ abc"),
    ("${ A }", "abc"),
    ("${A }", "abc"),
    ("${#A}", "3"),
    ("${A^}", "Abc"),
    ("${A^^}", "ABC"),
    ("${C,}", "xYZ"),
    ("${C,,}", "xyz"),
    ("${A:1}", "bc"),
    ("${A:1:2}", "bc"),
    ("${A:-1}", "abc"),
    ("${A: -2}", "abc"),
    ("${A:9}", ""),
    ("${A:1:99}", "bc"),
    ("${P#*/}", "b/c/b"),
    ("${P##*/}", "b"),
    ("${P%/*}", "a/b/c"),
    ("${P%%/*}", "a"),
    ("${P/b/X}", "a/X/c/b"),
    ("${P//b/X}", "a/X/c/X"),
    ("${P/#a/X}", "X/b/c/b"),
    ("${P/%b/X}", "a/b/c/X"),
    ("${P//\\//-}", "a-b-c-b"),
    ("${P/b}", None),
    ("${V#v}", "1.2"),
    ("${U:+y}", "y"),
    ("${U:?must}", "must"),
    ("${A:+y}", "abc"),
    ("${A", None),
    ("${}", None),
    ("${A:=}", "abc"),
    ("${U:=}", None),
    ("${-}", None),
    ("text ${A}${C}", "text abcXYZ"),
    ("${U:=${E:=deep}}", "deep"),
    ("${A!}", None),
    ("${A,x}", None),
    ("${P/a/$$}", "$/b/c/b"),
    ("${P//}", None),
]
"""Template, and text; None: it is refused, or a value is missing."""


@pytest.mark.parametrize(("template", "text"), CASES, ids=[template for template, _ in CASES])
def test_a_template_is_rendered_as_by_clusterctl(template: str, text: str | None) -> None:
    try:
        parsed = envsubst.parse(template)
    except envsubst.BadTemplate:
        assert text is None
        return
    if any(not default and name not in VALUES for name, default in envsubst.variables(parsed).items()):
        assert text is None
        return
    assert envsubst.substitute(parsed, VALUES) == text


def test_an_invalid_template_is_refused_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "template.yaml"
    file.write_text("a: b\nc: ${D\n")

    assert main(["generate", "x", "--from", str(file)]) == 1
    assert capsys.readouterr().err == f"clusterwright generate: {file}: line 2: ${{D: a closing brace is expected\n"


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ([], 1, "no value for NEEDED"),
        (["--set", "NEEDED"], 2, "NAME=VALUE is expected"),
        (["--set", "NEEDED=a: b: c"], 1, "the result is not YAML"),
        (["--from", "/nowhere"], 1, "/nowhere: No such file"),
    ],
    ids=["missing", "bad --set", "no YAML", "no file"],
)
def test_generation_failures_are_reported(
    arguments: list[str], status: int, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "template.yaml"
    file.write_text("name: ${CLUSTER_NAME}\nneeded: ${NEEDED}\n")

    assert main(["generate", "cluster", "x", "--from", str(file), *arguments]) == status
    captured = capsys.readouterr()
    assert said in captured.err
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""


def test_values_come_from_flags_then_set_then_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "template.yaml"
    file.write_text("[${CLUSTER_NAME}, ${NAMESPACE}, ${KUBERNETES_VERSION}, ${WORKER_MACHINE_COUNT}, ${OTHER:=1}]\n")
    for name in ("CLUSTER_NAME", "NAMESPACE", "KUBERNETES_VERSION", "WORKER_MACHINE_COUNT", "OTHER"):
        monkeypatch.setenv(name, "environment")

    flags = ["--set", "KUBERNETES_VERSION=set", "--set", "WORKER_MACHINE_COUNT=set", "--worker-machine-count", "0", "-n", "flag"]
    assert main(["generate", "cluster/name", "--from", str(file), *flags]) == 0
    assert capsys.readouterr().out == "[name, flag, set, 0, environment]\n"


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_flavor_is_a_template(flavor: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_VERSION", raising=False)
    assert main(["generate", "--flavor", flavor, "--list-variables"]) == 0
    assert capsys.readouterr().out.startswith(
        "Required Variables:\n  - CLUSTER_NAME\n\nOptional Variables:\n  - CONTROL_PLANE_MACHINE_COUNT"
    )

    assert main(["generate", "cluster/ns/x", "--flavor", flavor, "--control-plane-machine-count", "3"]) == 0
    generated = list(yaml.safe_load_all(capsys.readouterr().out))
    assert main(["create", "cluster/ns/x", "--flavor", flavor, "--control-plane-machines", "3", "--dry-run"]) == 0
    assert generated == list(yaml.safe_load_all(capsys.readouterr().out))
