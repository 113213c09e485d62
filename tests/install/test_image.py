"""The image as an OCI layout: what it says of itself is so, the same files give the same digests, and what it holds runs."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from install.test_containerfile import steps
from tools import image, oci
from tools.oci import Entry, Image, Layout, NotALayout

MACHINE = image.ARCHITECTURES.get(platform.machine(), platform.machine())


def blob(layout: Path, descriptor: dict[str, Any]) -> bytes:
    data = (layout / "blobs" / "sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()
    assert descriptor == {**descriptor, "digest": f"sha256:{hashlib.sha256(data).hexdigest()}", "size": len(data)}
    return data


def read(layout: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Manifest and configuration of a layout that is what the specification says."""
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index = json.loads((layout / "index.json").read_text())
    (described,) = index["manifests"]
    manifest = json.loads(blob(layout, described))
    config = json.loads(blob(layout, manifest["config"]))
    assert [index["schemaVersion"], manifest["schemaVersion"]] == [2, 2]
    assert [x["mediaType"] for x in (index, described, manifest, manifest["config"])] == [oci.INDEX, oci.MANIFEST, oci.MANIFEST, oci.CONFIG]
    assert {layer["mediaType"] for layer in manifest["layers"]} == {oci.LAYER}
    assert described["platform"] == {"os": config["os"], "architecture": config["architecture"]}
    unpacked = [f"sha256:{hashlib.sha256(gzip.decompress(blob(layout, layer))).hexdigest()}" for layer in manifest["layers"]]
    assert config["rootfs"] == {"type": "layers", "diff_ids": unpacked}
    assert len(config["history"]) == len(unpacked)
    named = {x["digest"].removeprefix("sha256:") for x in (described, manifest["config"], *manifest["layers"])}
    assert {path.name for path in (layout / "blobs" / "sha256").iterdir()} == named
    return manifest, config


def unpack(layout: Path, manifest: dict[str, Any], folder: Path) -> None:
    for layer in manifest["layers"]:
        with tarfile.open(layout / "blobs" / "sha256" / layer["digest"].removeprefix("sha256:")) as archive:
            members = archive.getmembers()
            assert {(m.uid, m.gid, m.mtime) for m in members} == {(0, 0, 0)}
            assert [m.name for m in members if m.name.startswith("/") or ".." in m.name.split("/")] == []
            assert [m.name for m in members if not m.issym() and m.mode & 0o022 and m.name != "tmp"] == []
            archive.extractall(folder, filter="tar")


def base(folder: Path, architecture: str = MACHINE, content: bytes = b"a base") -> Path:
    layout = Layout(folder)
    layer = layout.add_layer([Entry("usr/share/base", content=content)], "the base")
    layout.finish(Image(architecture, layers=(layer,), config={"Env": ["PATH=/bin"], "User": "root", "Volumes": {"/x": {}}}), "base")
    return folder


def test_the_same_files_give_the_same_digests_whoever_owns_them_and_whenever_they_were_written(tmp_path: Path) -> None:
    digests = set()
    for n, names in enumerate((["b/two", "a", "b/one"], ["a", "b/one", "b/two"])):
        files = tmp_path / f"files-{n}"
        (files / "b").mkdir(parents=True)
        for name in names:
            (files / name).write_text(name)
            (files / name).chmod((0o600, 0o664)[n])
            os.utime(files / name, (n * 1000, n * 1000))
        layout = Layout(tmp_path / f"layout-{n}")
        layer = layout.add_layer([Entry(name, source=files / name) for name in names], "files")
        digests.add(layout.finish(Image("amd64", layers=(layer,)), "x"))

    assert len(digests) == 1


def test_previous_files_of_the_folder_are_gone(tmp_path: Path) -> None:
    base(tmp_path, content=b"before")
    base(tmp_path, content=b"after")

    read(tmp_path)


def test_on_a_base_it_adds_dependencies_and_ours_and_is_not_root(tmp_path: Path) -> None:
    assert image.main(["--base", str(base(tmp_path / "base")), "--output", str(tmp_path / "image")]) == 0
    manifest, config = read(tmp_path / "image")

    assert len(manifest["layers"]) == 3
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Volumes"] == {"/x": {}}
    assert config["config"]["Env"] == ["PATH=/bin", *image.ENVIRONMENT]
    unpack(tmp_path / "image", manifest, tmp_path / "root")
    assert (tmp_path / "root" / "usr/share/base").read_bytes() == b"a base"
    # without what is installed here, only what was unpacked
    started = subprocess.run(
        [sys.executable, "-S", "-P", "-m", *config["config"]["Entrypoint"][2:], *config["config"]["Cmd"], "--help"],
        env={"PYTHONPATH": str(tmp_path / "root" / image.APP)}, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "--leader-elect" in started.stdout


def test_it_is_configured_as_the_containerfile_says() -> None:
    said = {word: rest for word, rest in steps() if word in {"USER", "EXPOSE", "ENTRYPOINT", "CMD"}}
    *_, environment = [rest for word, rest in steps() if word == "ENV"]

    assert image.CONFIG["User"] == said["USER"]
    assert image.CONFIG["ExposedPorts"] == {f"{port}/tcp": {} for port in said["EXPOSE"].split()}
    assert (image.CONFIG["Entrypoint"], image.CONFIG["Cmd"]) == (json.loads(said["ENTRYPOINT"]), json.loads(said["CMD"]))
    assert list(image.ENVIRONMENT) == environment.split()


@pytest.mark.soak
def test_without_a_base_it_holds_all_that_it_needs(tmp_path: Path) -> None:
    image.build(tmp_path / "image", None)
    manifest, config = read(tmp_path / "image")
    root = tmp_path / "root"
    unpack(tmp_path / "image", manifest, root)
    chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if os.geteuid() != 0 or chroot is None:
        pytest.skip("only root can try it with nothing else around it")
    environ = dict(item.split("=", 1) for item in config["config"]["Env"])
    program, *words = config["config"]["Entrypoint"]
    for path in (tmp_path, root):
        path.chmod(0o755)
    started = subprocess.run(
        [chroot, f"--userspec={config['config']['User']}", root, f"{environ['PATH']}/{program}", *words, *config["config"]["Cmd"], "--help"],
        env=environ, cwd="/", capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (started.returncode, started.stderr) == (0, "")
    assert "--leader-elect" in started.stdout


@pytest.mark.parametrize("fault", ["missing", "another architecture", "damaged"])
def test_an_invalid_base_image_is_refused(tmp_path: Path, fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "base"
    if fault != "missing":
        base(folder, "s390x" if fault == "another architecture" else MACHINE)
    if fault == "damaged":
        manifest, _ = read(folder)
        (folder / "blobs/sha256" / manifest["layers"][0]["digest"].removeprefix("sha256:")).write_bytes(b"other")

    with pytest.raises(NotALayout):
        Layout(tmp_path / "image").base(folder, MACHINE)
    assert image.main(["--base", str(folder), "--output", str(tmp_path / "image")]) == 1
    assert str(folder) in capsys.readouterr().err
