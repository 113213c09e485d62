"""The bootstrap script, run by a real shell, and what is said of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from clusterwright.containers import bootscript
from clusterwright.containers.bootscript import Progress, progress
from clusterwright.kubeadm.cloudconfig import CloudConfig, File


class Node:
    """A folder that stands for the node's state; the script's own paths are moved there."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, folder / "state"
        self.state.mkdir()

    def run(self, config: CloudConfig) -> Progress:
        text = bootscript.script(config).decode().replace(bootscript.STATE, str(self.state))
        with (self.state / "output").open("wb") as output:
            subprocess.run(["sh"], input=text, text=True, stdout=output, stderr=output, check=True, cwd=self.folder, timeout=60)
        return self.look()

    def look(self) -> Progress:
        look = bootscript.LOOK.replace(bootscript.STATE, str(self.state))
        return progress(subprocess.run(["sh", "-c", look], capture_output=True, text=True, check=True).stdout)


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    monkeypatch.setattr(bootscript, "LIMITS", str(tmp_path))
    return Node(tmp_path)


def test_everything_is_done_in_the_order_of_cloud_init(node: Node) -> None:
    seen = node.folder / "seen"
    config = CloudConfig(
        early_commands=(f"echo early >> {seen}",),
        files=(File(path=str(node.folder / "deep/er/file"), content=b"x"),),
        commands=(f"cat {node.folder}/deep/er/file >> {seen}", f"echo ' it''s \"quoted\" #1 $HOME' >> {seen}"),
    )

    assert node.run(config) == Progress(is_started=True, is_over=True, step="done")
    assert seen.read_text() == 'early\nx its "quoted" #1 $HOME\n'


def test_limits_of_the_host_are_raised_and_never_lowered(node: Node) -> None:
    instances, watches = node.folder / "max_user_instances", node.folder / "max_user_watches"
    instances.write_text("128\n")
    watches.write_text("999999\n")

    assert node.run(CloudConfig()).is_over
    assert (instances.read_text(), watches.read_text()) == ("1024\n", "999999\n")


def test_limits_that_cannot_be_raised_are_reported_with_the_failure(node: Node) -> None:
    (node.folder / "max_user_instances").symlink_to("/proc/sys/kernel/cap_last_cap")  # a number below, which not even root can change
    failed = node.run(CloudConfig(commands=("echo 'error: no runtime' >&2; exit 3",)))

    assert failed.failure.startswith("runcmd 1 (echo) ended with code 3: error: no runtime; fs.inotify.max_user_instances is ")
    assert failed.failure.endswith(" on the host: raise it to 1024")


@pytest.mark.parametrize(
    "content",
    [b"", b"no newline at the end", b"END\nEND\n", bytes(range(256)), b"  leading\n\ttab\n", "ä€😀".encode(), b"x" * 200_000],
    ids=range(7),
)
def test_files_are_written_byte_for_byte(node: Node, content: bytes) -> None:
    path = node.folder / "with space's"

    assert node.run(CloudConfig(files=(File(path=str(path), content=content, permissions="0640"),))).is_over
    assert path.read_bytes() == content
    assert path.stat().st_mode & 0o7777 == 0o640


def test_a_file_is_appended_to_and_keeps_its_rest(node: Node) -> None:
    path = node.folder / "hosts"
    path.write_text("1\n")

    node.run(CloudConfig(files=(File(path=str(path), content=b"2\n", append=True),)))
    assert path.read_text() == "1\n2\n"


def test_the_first_command_that_fails_ends_it_and_is_named(node: Node) -> None:
    after = node.folder / "after"
    found = node.run(
        CloudConfig(commands=("echo fine", "echo 'error execution phase preflight: port in use' >&2; exit 3", f"touch {after}"))
    )

    assert found.failure == "runcmd 2 (echo) ended with code 3: error execution phase preflight: port in use"
    assert found.is_over
    assert not after.exists()


def test_a_command_that_reads_its_input_does_not_read_the_script(node: Node) -> None:
    assert node.run(CloudConfig(commands=("cat", "true"))) == Progress(is_started=True, is_over=True, step="done")


def test_no_secret_is_left_behind_or_reported(node: Node) -> None:
    secret, token, key = "pa55word-of-the-registry", "abcdef.0123456789abcdef", "f" * 64
    config = CloudConfig(
        files=(File(path=str(node.folder / "f"), content=secret.encode()),),
        commands=(f"login --password {secret}; echo 'error: join with {token} and {key} sha256:{key} failed'; exit 1",),
    )
    (node.state / "boot").write_bytes(bootscript.script(config))

    found = node.run(config)
    assert not (node.state / "boot").exists()
    assert secret not in found.failure
    assert token not in found.failure
    assert found.failure.count(key) == 1, "the hash of a CA is not secret"
    assert found.failure.startswith("runcmd 1 (login) ended with code 1")


def test_a_running_or_lost_script_is_reported(node: Node) -> None:
    assert node.look() == Progress()

    (node.state / "step").write_text("runcmd 1 (kubeadm init)\n")
    (node.state / "pid").write_text(f"{os.getpid()}\n")
    assert node.look() == Progress(is_started=True, step="runcmd 1 (kubeadm init)")

    (node.state / "pid").write_text("4194304\n")
    assert node.look().failure == "runcmd 1 (kubeadm init) was interrupted: the container was restarted"


def test_a_long_complaint_is_cut_to_its_end(node: Node) -> None:
    found = node.run(
        CloudConfig(
            commands=(
                "for i in 1 2 3 4 5 6 7 8 9; do echo \"$i$(printf ' failed%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20)\"; done; exit 1",
            )
        )
    )

    assert "\n" not in found.failure
    assert len(found.failure) < bootscript.MOST_MESSAGE + 100


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("kubeadm join --config /x --token a.b && echo success > /run/x", "kubeadm join"),
        ("/usr/bin/curl -u me:secret https://x", "curl"),
        ("PASSWORD=secret run", "a command"),
        ("", "a command"),
        ("x" * 100, "x" * 40),
    ],
)
def test_only_the_program_of_a_command_is_reported(command: str, said: str) -> None:
    assert bootscript.program(command) == said


@pytest.mark.parametrize("output", ["", "\n", "started", "started\n0", "nonsense\n1\n2\n3"])
def test_output_of_something_else_means_not_started(output: str) -> None:
    assert progress(output) == Progress()
