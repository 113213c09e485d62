"""The flags of providers' programs: which ones a program knows, and the values that we choose for some of them. Pure.

Programs of Cluster API's providers derive from the same few scaffolds, so addresses and certificates are given by a handful of names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

_HELP: Final = re.compile(r"^\s{0,12}(?:-\w, )?--?([a-zA-Z][\w.-]*)", re.MULTILINE)
_PATH: Final = re.compile(r'\(default "(/[^"\n]{1,500})"\)')
MOST_FLAGS: Final = 500


class Purpose(NamedTuple):
    """A setting that we choose, with the names of flags that set it, and the values."""

    name: str
    flags: tuple[str, ...]


WEBHOOK_PORT: Final = Purpose("webhook port", ("webhook-port", "webhook-server-port", "webhook-bind-port"))
WEBHOOK_HOST: Final = Purpose("webhook host", ("webhook-host", "webhook-bind-host"))
CERTIFICATES: Final = Purpose("webhook certificates", ("webhook-cert-dir", "webhook-cert-path", "webhook-certs-dir"))
HEALTH: Final = Purpose("health address", ("health-addr", "health-probe-bind-address", "health-probe-addr", "healthz-addr"))
METRICS: Final = Purpose("metrics address", ("diagnostics-address", "metrics-bind-address", "metrics-bind-addr", "metrics-addr"))
LEADER: Final = Purpose("leader election", ("leader-elect", "enable-leader-election", "leader-election"))
KUBECONFIG: Final = Purpose("kubeconfig", ("kubeconfig",))


def known(text: str) -> dict[str, str]:
    """Return the flags that a program's help names, with those defaults that are paths; others are empty."""
    heads = list(_HELP.finditer(text))[:MOST_FLAGS]
    found: dict[str, str] = {}
    for number, head in enumerate(heads, 1):
        end = heads[number].start() if number < len(heads) else len(text)
        default = _PATH.search(text, head.end(), end)
        found.setdefault(head[1], default[1] if default is not None else "")
    return found


def name_of(argument: str) -> str:
    """Return the flag of an argument; empty for other arguments."""
    head = argument.partition("=")[0]
    return head.lstrip("-") if head.startswith("-") and head.strip("-") else ""


def without(args: Sequence[str], names: Collection[str]) -> list[str]:
    """Return the arguments without some flags. A value that follows as an argument of its own goes, too."""
    kept: list[str] = []
    skips = False
    for argument in args:
        if skips and not argument.startswith("-"):
            skips = False
            continue
        skips = False
        if name_of(argument) in names:
            skips = "=" not in argument
        else:
            kept.append(argument)
    return kept


def chosen(purpose: Purpose, args: Sequence[str], flags: Collection[str]) -> str:
    """Return the flag that a program has for a purpose: one that is given already, or one that its help names. Empty: none."""
    given = {name_of(argument) for argument in args}
    return next((flag for flag in purpose.flags if flag in given), "") or next((flag for flag in purpose.flags if flag in flags), "")


def value_of(args: Sequence[str], flag: str) -> str:
    """Return the value of a flag in arguments; the last one counts."""
    found = ""
    for position, argument in enumerate(args):
        if name_of(argument) == flag:
            _, is_assigned, value = argument.partition("=")
            found = value if is_assigned else next(iter(args[position + 1 : position + 2]), "")
    return found


def settled(args: Sequence[str], extra: Sequence[str], flags: Collection[str], values: Mapping[Purpose, str]) -> list[str]:
    """Return the arguments of a process.

    `extra`: the user's arguments, which replace equal flags of the Deployment. `values`: our settings, which the user may override.
    Leader election is switched off, because there is one process: after a crash it would wait for its own Lease.
    """
    asked = {name_of(argument) for argument in extra} - {""}
    made = without(args, asked - _repeatable(args))
    mine: list[str] = []
    for purpose, value in values.items():
        flag = chosen(purpose, (*args, *extra), flags)
        if flag and flag not in asked:
            made = without(made, set(purpose.flags))
            mine.append(f"--{flag}={value}")
    if not asked & set(LEADER.flags):
        made = [argument for argument in made if name_of(argument) not in LEADER.flags]
        mine += [f"--{flag}=false" for flag in LEADER.flags if flag in flags]  # some programs lead unless they are told not to
    return [*made, *mine, *extra]


def _repeatable(args: Sequence[str]) -> set[str]:
    """Return flags that are given more than once: another one is added to them."""
    names = [name_of(argument) for argument in args]
    return {name for name in names if names.count(name) > 1}
