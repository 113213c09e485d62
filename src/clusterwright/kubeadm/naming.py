"""Names of Machines: from the naming template, with a suffix that is the same whenever the situation is the same. Pure.

Upstream's random suffix makes a second Machine when the first is not in the cache yet. Ours is derived from the control plane's
uid and a slot, which is made of what there is now: creating again from the same view meets the same name.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

DEFAULT_TEMPLATE = "{{ .kubeadmControlPlane.name }}-{{ .random }}"
MAX_LENGTH = 63
_SUFFIX_LENGTH = 5
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_EXPRESSION = re.compile(r"(?P<before>\s*)\{\{(?P<ltrim>-\s)?\s*(?P<body>.*?)\s*(?P<rtrim>\s-)?\}\}(?P<after>\s*)", re.DOTALL)
_VARIABLE = re.compile(r"\.[A-Za-z_][\w]*(?:\.[A-Za-z_][\w]*)*")
_RANDOM = re.compile(r"\{\{-?\s*\.random\s*-?\}\}")


class BadNamingTemplate(ValueError):
    """The naming template cannot give a name."""


def suffix(uid: str, slot: str) -> str:
    """Five characters that mean no word, the same for the same owner and slot."""
    number = int.from_bytes(hashlib.sha256(f"{uid}/{slot}".encode()).digest()[:8], "big")
    out = ""
    for _ in range(_SUFFIX_LENGTH):
        number, rest = divmod(number, len(_ALPHABET))
        out += _ALPHABET[rest]
    return out


def slot(parts: Iterable[str]) -> str:
    """The slot that a situation stands for; the order of its parts does not matter."""
    return ",".join(sorted(parts))


def render(template: str, data: Mapping[str, Any]) -> str:
    """The text with each `{{ .variable }}` replaced by what `data` has there; raises BadNamingTemplate."""

    def replace(match: re.Match[str]) -> str:
        body = match["body"]
        value: Any = data if _VARIABLE.fullmatch(body) else None
        for step in body.split(".")[1:]:
            value = value.get(step) if isinstance(value, Mapping) else None
        if not isinstance(value, str):
            raise BadNamingTemplate(f"cannot evaluate {body!r} in machineNaming.template")
        before = "" if match["ltrim"] else match["before"]
        after = "" if match["rtrim"] else match["after"]
        return before + value + after

    rendered = _EXPRESSION.sub(replace, template)
    if "{{" in rendered or "}}" in rendered:
        raise BadNamingTemplate("unbalanced braces in machineNaming.template")
    return rendered


def shortened(name: str, random: str) -> str:
    """The name, cut to what a name may be long and told apart by its end."""
    return name if len(name) <= MAX_LENGTH else name[: MAX_LENGTH - _SUFFIX_LENGTH] + random


def machine_name(*, template: str, cluster: str, control_plane: str, uid: str, slot: str, taken: Collection[str] = ()) -> str:
    """The name for the next Machine; `taken` names are passed over. Raises BadNamingTemplate."""
    chosen = template or DEFAULT_TEMPLATE
    if not _RANDOM.search(chosen):
        raise BadNamingTemplate("{{ .random }} is missing in machineNaming.template")
    for turn in range(len(taken) + 1):
        random = suffix(uid, f"{slot}#{turn}" if turn else slot)
        data = {"cluster": {"name": cluster}, "kubeadmControlPlane": {"name": control_plane}, "random": random}
        name = shortened(render(chosen, data), random)
        if name not in taken:
            return name
    raise AssertionError("unreachable: there are more turns than taken names")


def label_value(name: str) -> str:
    """A name as a label value; one that is none is replaced by its hash."""
    if len(name) <= 63 and re.fullmatch(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", name):
        return name
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"hash_{base64.urlsafe_b64encode(value.to_bytes(4, 'big')).decode().rstrip('=')}_z"
