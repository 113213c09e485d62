"""Bootstrap data as one shell script that runs inside the node, and its state files. Pure.

The script runs detached, so that a restarted plane finds it again. It writes its current step, its output, and in the end its exit code to
files in `STATE`. It stops at the first command that fails, as upstream's provider does. The script holds secrets: it is given to the node
on standard input, is readable by root only, and is removed when it ends.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterwright.kubeadm.cloudconfig import CloudConfig, File
from clusterwright.runtime.logging import redact

STATE = "/var/lib/clusterwright"
MOST_MESSAGE = 700
"""How many characters of a failed command's output are repeated."""
START = (
    f"umask 077; mkdir -p {STATE} && cd {STATE} && cat > boot && "
    f"{{ setsid sh {STATE}/boot </dev/null >{STATE}/output 2>&1 & echo $! > pid; }}"
)
"""The command that reads the script from standard input and starts it."""
LOOK = (
    f"cd {STATE} 2>/dev/null && test -s pid || exit 0; "
    "echo started; cat exit 2>/dev/null || { kill -0 $(cat pid) 2>/dev/null && echo running; } || cat exit 2>/dev/null || echo lost; "
    "cat step 2>/dev/null || echo; echo $(($(date +%s) - $(stat -c %Y pid))); "
    "tail -c 8000 output 2>/dev/null; cat limits 2>/dev/null || true"
)
"""The command that prints the state of the script; `progress` parses it."""


SYSTEM_SECONDS = 120
SYSTEM_IS_UP = (
    "command -v systemctl >/dev/null || exit 0; "
    "case $(systemctl is-system-running 2>/dev/null) in running|degraded) exit 0;; esac; "
    f"test $(($(date +%s) - $(stat -c %Y /proc/1))) -ge {SYSTEM_SECONDS}"
)
"""The command that succeeds once systemd is up, if the node has it, because images and kubeadm need containerd.

It also succeeds if that takes too long: a unit that never starts need not stop kubeadm.
"""


INOTIFY = {"max_user_instances": 1024, "max_user_watches": 524288}
"""Limits of the host that all its nodes share; two nodes use up the usual 128 instances, and containerd is the first to fail."""
_RAISE = [
    f"f={name}; test -r $p/$f && test $(cat $p/$f) -lt {least} && ! echo {least} 2>/dev/null > $p/$f && "
    f'echo "fs.inotify.$f is $(cat $p/$f) on the host: raise it to {least}" >> "$STATE/limits"'
    for name, least in INOTIFY.items()
]
LIMITS = "/proc/sys/fs/inotify"


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of the script."""

    is_started: bool = False
    is_over: bool = False
    failure: str = ""
    """The reason of a failure, in one line, without secrets."""
    step: str = ""
    seconds: int = 0
    """The seconds since the start."""


def script(config: CloudConfig) -> bytes:
    """Return the script that does what cloud-init would do with a cloud-config."""
    lines = [
        "#!/bin/sh",
        f"STATE={STATE}",
        'echo $$ > "$STATE/pid"; cd /',
        'finish() { echo "$1" > "$STATE/exit.new"; rm -f "$STATE/boot"; mv "$STATE/exit.new" "$STATE/exit"; exit 0; }',
        'step() { echo "$1" > "$STATE/step"; }',
        f"p={LIMITS}",
        *_RAISE,
        "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root",
    ]
    lines += _steps("bootcmd", config.early_commands)
    for user in config.users:
        lines += _user(user)
    for file in config.files:
        lines += _write(file)
    lines += _steps("runcmd", config.commands)
    lines += ["step done", "finish 0", ""]
    return "\n".join(lines).encode()


def _steps(module: str, commands: Sequence[str]) -> list[str]:
    lines = []
    for number, command in enumerate(commands, 1):
        lines += [f"step {shlex.quote(f'{module} {number} ({program(command)})')}", f"sh -c {shlex.quote(command)} </dev/null || finish $?"]
    return lines


def program(command: str) -> str:
    """Return the printable part of a command: its program, and kubeadm's subcommand. Arguments may be secret."""
    found = re.search(r"\bkubeadm (init|join)\b", command)
    if found:
        return found[0]
    words = command.split()
    return words[0].rpartition("/")[2][:40] if words and re.fullmatch(r"[\w./-]+", words[0]) else "a command"


def _write(file: File) -> list[str]:
    path, operator = shlex.quote(file.path), ">>" if file.append else ">"
    folder = shlex.quote(file.path.rpartition("/")[0] or "/")
    mode = file.permissions if re.fullmatch(r"[0-7]{3,5}", file.permissions) else "0644"
    owner = file.owner if re.fullmatch(r"[\w.-]+(:[\w.-]+)?", file.owner) else "root:root"
    lines = [f"step {shlex.quote(f'write_files {file.path}')}", f"(umask 022; mkdir -p {folder}) || finish $?"]
    if not file.append:
        lines.append(f"(umask 077; : > {path}) || finish $?")  # nobody may read it before it has its permissions
    content = base64.encodebytes(file.content).decode()
    lines += [f"base64 -d {operator} {path} <<'END' || finish $?", f"{content}END"]
    return [*lines, f"chmod {mode} {path} || finish $?", *([f"chown {owner} {path} || finish $?"] if owner != "root:root" else [])]


def _user(user: Mapping[str, Any]) -> list[str]:
    name = str(user.get("name", ""))
    if not re.fullmatch(r"[a-z_][a-z0-9_-]{0,31}", name):
        return []
    home = shlex.quote(str(user.get("homedir") or f"/home/{name}"))
    options = ["-m", "-d", home, "-s", shlex.quote(str(user.get("shell") or "/bin/sh"))]
    if groups := user.get("groups"):
        named = groups if isinstance(groups, str) else ",".join(map(str, groups))
        options += ["-G", shlex.quote(named.replace(" ", ""))]
    lines = [f"step {shlex.quote(f'users {name}')}", f"id {name} >/dev/null 2>&1 || useradd {' '.join(options)} {name} || finish $?"]
    if password := user.get("passwd") or user.get("hashed_passwd"):
        lines.append(f"printf '%s\\n' {shlex.quote(f'{name}:{password}')} | chpasswd -e || finish $?")
    if keys := user.get("ssh_authorized_keys"):
        content = "".join(f"{key}\n" for key in ([keys] if isinstance(keys, str) else keys)).encode()
        lines += _write(
            File(path=f"{user.get('homedir') or f'/home/{name}'}/.ssh/authorized_keys", content=content, owner=name, permissions="0600")
        )
    if sudo := user.get("sudo"):
        rules = [sudo] if isinstance(sudo, str) else sudo
        content = "".join(f"{name} {rule}\n" for rule in rules).encode()
        lines += _write(File(path=f"/etc/sudoers.d/90-{name}", content=content, permissions="0440"))
    return lines


def progress(output: str) -> Progress:
    """Return the progress of the script, from the output of `LOOK`."""
    lines = output.split("\n")
    if lines[0] != "started" or len(lines) < 4:
        return Progress()
    state, step, said = lines[1].strip(), lines[2].strip(), "\n".join(lines[4:])
    if state == "running":
        seconds = lines[3].strip()
        return Progress(is_started=True, step=step, seconds=int(seconds) if seconds.isdecimal() else 0)
    if state == "lost":
        return Progress(
            is_started=True, is_over=True, step=step, failure=f"{step or 'booting'} was interrupted: the container was restarted"
        )
    if state == "0":
        return Progress(is_started=True, is_over=True, step=step)
    return Progress(is_started=True, is_over=True, step=step, failure=f"{step} ended with code {state}: {essence(said)}")


def essence(output: str) -> str:
    """Return the essence of a failed command's output, in one line: its errors, or its end; without secrets."""
    lines = [line.strip() for line in redact(output).splitlines() if line.strip()]
    complaints = [line for line in lines if re.search(r"\berror|\[ERROR|fatal|cannot|failed|: raise it to", line, re.IGNORECASE)]
    text = "; ".join((complaints or lines)[-6:])
    text = re.sub(r"\b(?<!sha256:)[0-9a-f]{64}\b|[A-Za-z0-9+/]{80,}={0,2}", "<redacted>", text)
    return text if len(text) <= MOST_MESSAGE else f"...{text[-MOST_MESSAGE:]}"
