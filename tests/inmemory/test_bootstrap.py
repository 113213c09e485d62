"""User data as a booting machine reads it."""

import base64
import gzip
import json
from collections.abc import Callable

import pytest

from clusterwright.inmemory import bootstrap
from clusterwright.inmemory.bootstrap import SENTINEL, BootFailure

DOCUMENT = "apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n"
RUN = f"kubeadm join --config /run/k.yaml  && echo success > {SENTINEL}"


def cloud_config(files="", runcmd=RUN, header="## template: jinja\n#cloud-config\n"):
    indented = DOCUMENT.replace("\n", "\n      ")
    return f"{header}\nwrite_files:\n-   path: /run/k.yaml\n    content: |\n      {indented}\n{files}\nruncmd:\n  - {json.dumps(runcmd)}\n".encode()


def ignition(files=(), unit="[Service]\nExecStart=/etc/kubeadm.sh\n", script=RUN, version="2.3.0", enabled=True):
    def source(text):
        return {"contents": {"source": "data:," + text.replace("%", "%25").replace("\n", "%0A").replace(" ", "%20")}}

    stored = [{"path": "/etc/kubeadm.sh", **source(script)}, {"path": "/run/k.yaml", **source(DOCUMENT)}, *files]
    units = [{"name": "kubeadm.service", "enabled": enabled, "contents": unit}]
    return json.dumps({"ignition": {"version": version}, "storage": {"files": stored}, "systemd": {"units": units}}).encode()


def test_both_formats_give_files_command_and_documents():
    for data in (bootstrap.parse(cloud_config(), ""), bootstrap.parse(ignition(), "ignition")):
        assert data.command == "join"
        assert data.document("JoinConfiguration")["kind"] == "JoinConfiguration"
        assert "/run/k.yaml" in data.files


@pytest.mark.parametrize("encoding", ["b64", "base64", "gz+b64", "gzip+base64"])
def test_encoded_files_are_decoded(encoding):
    content = gzip.compress(b"hello") if encoding.startswith("gz") else b"hello"
    text = f"-   path: /x\n    encoding: {encoding}\n    content: {base64.b64encode(content).decode()}\n"

    assert bootstrap.parse(cloud_config(text), "cloud-config").files["/x"] == b"hello"


def test_appended_content_is_added_to_the_file():
    text = "-   path: /x\n    content: a\n-   path: /x\n    content: b\n    append: true\n"

    assert bootstrap.parse(cloud_config(text), "").files["/x"] == b"ab"


def test_instance_data_is_filled_in_before_the_yaml_is_read():
    text = "-   path: /x\n    content: name={{ ds.meta_data.local_hostname }} id={{v1.instance_id}} what={{ ds.meta_data.other }}\n"

    files = bootstrap.parse(cloud_config(text), "", "node-1").files
    assert files["/x"] == b"name=node-1 id=node-1 what=CI_MISSING_JINJA_VAR/other"
    plain = bootstrap.parse(cloud_config(text, header="#cloud-config\n"), "", "node-1").files
    assert b"{{ ds.meta_data.local_hostname }}" in plain["/x"]


def test_compressed_and_encoded_sources_of_ignition_are_read():
    packed = base64.b64encode(gzip.compress(b"hello")).decode()
    files = [{"path": "/x", "contents": {"source": f"data:;base64,{packed}", "compression": "gzip"}}, {"path": "/empty", "contents": {}}]

    found = bootstrap.parse(ignition(files), "ignition").files
    assert (found["/x"], found["/empty"]) == (b"hello", b"")


BAD = {
    "unknown format": (b"", "butane", "unknown format 'butane'"),
    "not text": (b"\xff\xfe", "", "is not text"),
    "no header": (b"runcmd: []\n", "", "does not start with #cloud-config"),
    "empty": (b"", "", "does not start with #cloud-config"),
    "not YAML": (b"#cloud-config\na: [", "", "is not YAML"),
    "not a mapping": (b"#cloud-config\n- a\n", "", "is not a mapping"),
    "files are no list": (b"#cloud-config\nwrite_files: 3\n", "", "write_files is not a list"),
    "file without path": (cloud_config("-   content: x\n"), "", "has no path"),
    "bad base64": (cloud_config("-   path: /x\n    encoding: b64\n    content: '*'\n"), "", "cannot be decoded as b64"),
    "no kubeadm": (cloud_config(runcmd="echo hello"), "", "neither kubeadm init nor kubeadm join"),
    "no sentinel": (cloud_config(runcmd="kubeadm join --config /run/k.yaml"), "", "no command writes"),
    "missing file": (cloud_config(runcmd=RUN.replace("/run/k.yaml", "/run/other.yaml")), "", "open /run/other.yaml: no such file"),
    "not JSON": (b"{", "ignition", "is not JSON"),
    "ignition 3": (ignition(version="3.4.0"), "ignition", "unsupported configuration version '3.4.0'"),
    "no version": (b"[]", "ignition", "unsupported configuration version ''"),
    "remote file": (ignition([{"path": "/x", "contents": {"source": "https://example.com"}}]), "ignition", "cannot be fetched"),
    "garbled file": (ignition([{"path": "/x", "contents": {"source": "data:;base64,*"}}]), "ignition", "/x cannot be decoded"),
    "missing script": (ignition(unit="ExecStart=/etc/other.sh\n"), "ignition", "/etc/other.sh does not exist"),
    "disabled unit": (ignition(enabled=False), "ignition", "neither kubeadm init nor kubeadm join"),
}


@pytest.mark.parametrize(("value", "format", "complaint"), BAD.values(), ids=BAD.keys())
def test_data_that_a_machine_cannot_use_is_refused(value, format, complaint):
    with pytest.raises(BootFailure, match=complaint):
        bootstrap.parse(value, format)


def test_a_configuration_that_is_not_kubeadms_is_refused():
    for content, complaint in (
        ("[", "is not YAML"),
        ("apiVersion: v1\n", "not a kubeadm configuration"),
        ("text", "not a kubeadm configuration"),
    ):
        value = cloud_config(f"-   path: /run/k.yaml\n    content: {json.dumps(content)}\n")
        with pytest.raises(BootFailure, match=complaint):
            bootstrap.parse(value, "")


def test_a_refusal_does_not_quote_the_data():
    value = b"#cloud-config\nsecret: abcdef.0123456789abcdef\na: ["

    with pytest.raises(BootFailure) as failure:
        bootstrap.parse(value, "")
    assert "abcdef" not in str(failure.value)
    assert failure.value.__cause__ is None


PACKED: dict[str, Callable[[], bytes]] = {
    "200 MiB of nothing": lambda: gzip.compress(bytes(200 << 20), 1),
    "half of it": lambda: gzip.compress(b"hello")[:-12],
    "garbage": lambda: b"\x1f\x8b\x08\0\0\0\0\0\0\0garbage",
    "no gzip": lambda: b"no gzip",
    "nothing": lambda: b"",
}
"""Made when they are tried: gzip writes the time into what it packs, and by that no test may be named."""


@pytest.mark.parametrize("packed", PACKED)
def test_invalid_gzip_data_fails_the_boot(packed):
    encoded = base64.b64encode(PACKED[packed]()).decode()
    cloud = f"-   path: /x\n    encoding: gz+b64\n    content: {encoded!r}\n"
    stored = {"path": "/x", "contents": {"source": f"data:;base64,{encoded}", "compression": "gzip"}}

    with pytest.raises(BootFailure, match="/x cannot be decoded"):
        bootstrap.parse(cloud_config(cloud), "")
    with pytest.raises(BootFailure, match="/x cannot be decoded"):
        bootstrap.parse(ignition([stored]), "ignition")


@pytest.mark.parametrize(
    "part",
    [
        {"ignition": 5},
        {"storage": []},
        {"storage": {"files": 7}},
        {"storage": {"files": [3]}},
        {"systemd": {"units": ["x"]}},
        {"systemd": "x"},
    ],
)
def test_malformed_ignition_fails_the_boot(part):
    with pytest.raises(BootFailure, match="ignition: "):
        bootstrap.parse(json.dumps({**json.loads(ignition()), **part}).encode(), "ignition")


def test_deeply_nested_ignition_fails_the_boot():
    with pytest.raises(BootFailure, match="is not JSON"):
        bootstrap.parse(b"[" * 100_000, "ignition")
