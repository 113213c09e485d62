"""Files that are named on the command line: whoever sent them, the answer is a sentence."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import yaml

from clusterwright.cli.main import main
from clusterwright.offline.bundle import shaped

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
LINES = [
    "a: &a [x, x, x, x, x, x, x, x, x]",
    *(f"{c}: &{c} [{', '.join([f'*{p}'] * 9)}]" for p, c in zip("abcdefgh", "bcdefghi", strict=True)),
]
FILES = {
    "binary": (b"\xff\xfe\x00\x01", "the file is not valid UTF-8"),
    "half of a gzip": (gzip.compress(b"{}" * 1000)[:20], "the compressed data are damaged"),
    "deep JSON": (b'{"a":' * 100_000, "more than 100 levels are nested"),
    "deep YAML": (b"[" * 50_000, "more than 100 levels are nested"),
    "aliases that stand for gigabytes": ((HEAD + "\n".join(LINES)).encode(), "values"),
    "an alias that stands for itself": (f"{HEAD}data: &a {{b: *a}}\n".encode(), "an alias is part of what it stands for"),
    "nothing of an object": (b"- 1\n- a\n", "not an object with a kind"),
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "command", [["explain", "cluster/a"], ["render", "kubeadmconfig/a"], ["timeline", "cluster/a"]], ids=lambda c: c[0]
)
def test_unreadable_input_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], name: str) -> None:
    file = tmp_path / "bundle"
    content, said = FILES[name]
    file.write_bytes(content)

    assert main([*command, "--from", str(file)]) == 1

    told = capsys.readouterr().err
    assert told.startswith(f"clusterwright {command[0]}: ")
    assert said in told


def test_a_template_that_is_not_text_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "template"
    file.write_bytes(b"\xff")

    assert main(["generate", "cluster/a", "--from", str(file)]) == 1
    assert "the file is not valid UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("compressed", [False, True])
def test_aliases_and_compression_are_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str], compressed: bool) -> None:
    file = tmp_path / "bundle"
    text = f"{HEAD}data: &a {{b: c}}\nbinaryData: *a\n".encode()
    file.write_bytes(gzip.compress(text) if compressed else text)

    for command in (["explain", "cluster/a"], ["timeline", "cluster/a"]):
        assert main([*command, "--from", str(file)]) == 1
        assert "a" in capsys.readouterr().err.split(": ", 1)[1]  # it was read: there is no such Cluster in it


ODD = {
    "metadata": {
        "labels": 5,
        "ownerReferences": [7, {"kind": "Cluster", "name": "a", "apiVersion": "cluster.x-k8s.io/v1beta2"}],
        "finalizers": "f",
    },
    "status": {"conditions": {"Ready": "yes"}, "v1beta2": {"conditions": [5]}, "deprecated": 3},
}


def test_fields_of_other_kinds_may_have_any_meaning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def named(kind: str, api: str, **fields: Any) -> dict[str, Any]:
        metadata = {"name": "a", "namespace": "default", **fields.pop("metadata", {})}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **fields}

    objects = [
        named("Cluster", "cluster.x-k8s.io/v1beta2", spec={"topology": {"classRef": {"name": "c"}, "version": "v1.30.0"}}, status={"conditions": {"a": "b"}}),
        named("OddCluster", "infrastructure.cluster.x-k8s.io/v1beta1", **ODD),
        named("Event", "v1", involvedObject=5, lastTimestamp="zzz"),
    ]  # fmt: skip
    file = tmp_path / "bundle.yaml"
    file.write_text(yaml.safe_dump_all(objects))

    assert main(["explain", "cluster/a", "-n", "default", "--from", str(file)]) == 0
    assert main(["timeline", "cluster/a", "-n", "default", "--from", str(file)]) == 0
    assert "Traceback" not in capsys.readouterr().err


def test_values_of_the_usual_shape_are_unchanged() -> None:
    usual = {
        "kind": "Machine",
        "metadata": {"name": "m", "labels": {"a": "b"}, "ownerReferences": [{"kind": "X"}], "finalizers": ["f"]},
        "spec": {"clusterName": "c"},
        "status": {"conditions": [{"type": "Ready"}], "deprecated": {"v1beta1": {"conditions": [{"type": "Ready"}]}}},
    }

    assert shaped(usual) == usual
    assert shaped({"metadata": {"name": "m"}, **ODD})["status"] == {"conditions": [], "v1beta2": {"conditions": []}, "deprecated": 3}
