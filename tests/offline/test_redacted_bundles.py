"""What a recorded bundle hides: everything in which users write secrets, wherever it stands."""

from __future__ import annotations

from typing import Any

import msgspec

from clusterwright.offline.complaints import REDACTED
from clusterwright.offline.record import redacted

NEEDLE = "n33dle"
BOOTSTRAP: dict[str, Any] = {
    "preKubeadmCommands": [f"echo {NEEDLE}", "true"],
    "postKubeadmCommands": [f"curl -u a:{NEEDLE} https://x"],
    "bootCommands": [f"export P={NEEDLE}"],
    "users": [{"name": "u", "passwd": NEEDLE, "sshAuthorizedKeys": [f"ssh-ed25519 {NEEDLE}"]}],
    "files": [{"path": "/p", "content": NEEDLE}],
    "ignition": {"containerLinuxConfig": {"additionalConfig": NEEDLE, "strict": True}},
    "verbosity": 3,
}


def text_of(obj: Any) -> str:
    return msgspec.json.encode(redacted(obj)).decode()


def test_commands_keys_and_passwords_of_bootstrap_configurations_are_hidden() -> None:
    kinds = {
        "KubeadmConfig": BOOTSTRAP,
        "KubeadmConfigTemplate": {"template": {"spec": BOOTSTRAP}},
        "KubeadmControlPlane": {"kubeadmConfigSpec": BOOTSTRAP},
        "KubeadmControlPlaneTemplate": {"template": {"spec": {"kubeadmConfigSpec": BOOTSTRAP}}},
    }

    for kind, spec in kinds.items():
        assert NEEDLE not in text_of({"kind": kind, "metadata": {"name": "x"}, "spec": spec})


def test_how_many_commands_there_are_and_what_is_harmless_stays() -> None:
    shown = redacted({"kind": "KubeadmConfig", "metadata": {"name": "x"}, "spec": BOOTSTRAP})["spec"]

    assert shown["preKubeadmCommands"] == [REDACTED, REDACTED]
    assert shown["users"][0] == {"name": "u", "passwd": REDACTED, "sshAuthorizedKeys": [REDACTED]}
    assert shown["files"] == [{"path": "/p", "content": REDACTED}]
    assert shown["verbosity"] == 3


def test_patches_of_a_class_on_hidden_fields_are_hidden() -> None:
    base = "/spec/template/spec/kubeadmConfigSpec"
    patches = [
        {"op": "add", "path": f"{base}/preKubeadmCommands/-", "value": f"echo {NEEDLE}"},
        {"op": "add", "path": f"{base}/files/-", "valueFrom": {"template": f"content: {NEEDLE}"}},
        {"op": "replace", "path": f"{base}/users/0/passwd", "value": NEEDLE},
        {"op": "add", "path": "/spec/template/spec/version", "value": "kept"},
    ]
    spec = {"patches": [{"name": "p", "definitions": [{"jsonPatches": patches}]}]}

    text = text_of({"kind": "ClusterClass", "metadata": {"name": "x"}, "spec": spec})

    assert NEEDLE not in text
    assert "kept" in text


def test_annotations_of_secrets_are_hidden() -> None:
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": NEEDLE, "example.com/note": NEEDLE, "empty": ""}
    secret = {"kind": "Secret", "metadata": {"name": "x", "annotations": annotations}, "data": {"a": NEEDLE}}

    assert redacted(secret)["metadata"]["annotations"] == {"example.com/note": REDACTED, "empty": ""}
    assert NEEDLE not in text_of(secret)


def test_annotations_that_keep_the_whole_object_are_left_out() -> None:
    stored_by_conversion = msgspec.json.encode({"spec": BOOTSTRAP}).decode()
    annotations = {"cluster.x-k8s.io/conversion-data": stored_by_conversion, "example.com/note": "kept"}

    shown = redacted({"kind": "KubeadmConfig", "metadata": {"name": "x", "annotations": annotations}, "spec": BOOTSTRAP})

    assert shown["metadata"]["annotations"] == {"example.com/note": "kept"}
