from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from clusterwright.api.bootstrap import KubeadmConfigSpec
from clusterwright.api.machine_setup import File, FileSource, SecretFileSource, User
from clusterwright.kubeadm import cloudinit, ignition
from clusterwright.kubeadm.node import Node, Role
from clusterwright.kubeadm.redaction import HIDDEN, CannotRedact, redacted, secret_paths

KEY = "-----BEGIN EC PRIVATE KEY-----\nc2VjcmV0LXNlY3JldA==\n-----END EC PRIVATE KEY-----\n"
TOKEN = "abcdef.0123456789abcdef"


def _node(*files: File, **parts: Any) -> Node:
    return Node(role=Role.JOIN_CONTROL_PLANE, documents=(f"token: {TOKEN}\n",), files=files, **parts)


RENDERERS: list[Callable[[Node], str]] = [lambda n: cloudinit.render(n).decode(), lambda n: ignition.render(n).data.decode()]


@pytest.mark.parametrize("render", RENDERERS, ids=["cloud-config", "ignition"])
def test_secrets_are_hidden_and_the_rest_is_not(render: Callable[[Node], str]) -> None:
    node = _node(
        File(path="/key", content=KEY, permissions="0600"),
        File(path="/from-secret", content="hidden content", permissions="0600"),
        File(path="/plain", content="plain content", permissions="0600"),
        users=(User(name="u", passwd="$6$hash"), User(name="v")),
    )

    text = redacted(render(node), {"/from-secret"})

    for secret in ("c2VjcmV0", "hidden", "0123456789abcdef", "$6$hash"):
        assert secret not in text
    assert f"abcdef.{HIDDEN}" in unquote(text)
    assert "plain" in text
    assert "/from-secret" in text


def test_the_redacted_text_is_still_a_cloud_config() -> None:
    node = _node(File(path="/key", content=KEY), File(path="/b", content="x\x00y"), users=(User(name="u", passwd="'quoted: hash'"),))

    data = yaml.safe_load(redacted(cloudinit.render(node).decode(), {"/b"}))

    assert [f["content"] for f in data["write_files"][:2]] == [HIDDEN, HIDDEN]
    assert data["users"] == [{"name": "u", "passwd": HIDDEN}]


def test_an_encoded_key_is_hidden_too() -> None:
    node = _node(
        File(path="/key", content=b64encode(KEY.encode()).decode(), encoding="base64"),
        File(path="/z", content="aaaa", encoding="gzip+base64"),
    )

    data = yaml.safe_load(redacted(cloudinit.render(node).decode()))

    assert [f["content"] for f in data["write_files"][:2]] == [HIDDEN, HIDDEN]


@pytest.mark.parametrize("data", ["write_files: [", '{"ignition": 1}', "{not json"])
def test_data_of_an_unknown_format_is_not_shown(data: str) -> None:
    with pytest.raises(CannotRedact):
        redacted(data)


def test_files_with_secrets_are_found() -> None:
    source = FileSource(secret=SecretFileSource(name="s", key="k"))
    spec = KubeadmConfigSpec(files=(File(path="/a", content="x"), File(path="/b", content_from=source)))

    assert secret_paths(spec) == {"/b"}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=40), max_size=3))
def test_contents_of_secrets_never_show(contents: list[str]) -> None:
    marked = [f"S3CR3T{c}" for c in contents]
    node = _node(*(File(path=f"/f{n}", content=c) for n, c in enumerate(marked)))

    for render in RENDERERS:
        assert "S3CR3T" not in redacted(render(node), {f"/f{n}" for n in range(len(marked))})
