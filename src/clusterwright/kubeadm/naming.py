"""Names of Machines: from the naming template, with a suffix that depends only on the situation. Pure.

Upstream's random suffix creates a second Machine when the first is not in the cache yet. Ours is derived from the control plane's UID and a
slot, which is a hash of the present state: creating again from the same state gives the same name.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from clusterwright import gotemplate

DEFAULT_TEMPLATE = "{{ .kubeadmControlPlane.name }}-{{ .random }}"
MAX_LENGTH = 63
_SUFFIX_LENGTH = 5
_MOST_TURNS = 100
"""How many suffixes are tried for one name. There are 14 million, so that even with a million names one of a hundred is free."""
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_RANDOM = re.compile(r"\{\{-?\s*\.random\s*-?\}\}")


class BadNamingTemplate(ValueError):
    """The naming template yields no name."""


def suffix(uid: str, slot: str) -> str:
    """Return five characters without vowels, the same for the same owner and slot."""
    number = int.from_bytes(hashlib.sha256(f"{uid}/{slot}".encode()).digest()[:8], "big")
    out = ""
    for _ in range(_SUFFIX_LENGTH):
        number, rest = divmod(number, len(_ALPHABET))
        out += _ALPHABET[rest]
    return out


def slot(parts: Iterable[str]) -> str:
    """Return the slot of a situation; the order of its parts does not matter."""
    return ",".join(sorted(parts))


def render(template: str, data: Mapping[str, Any]) -> str:
    """Return the result of the Go template for these data; unknown keys are errors; raises BadNamingTemplate."""
    try:
        return gotemplate.parse(template).render(data)
    except gotemplate.TemplateError as error:
        raise BadNamingTemplate(f"cannot evaluate machineNaming.template: {error}") from error


def shortened(name: str, random: str) -> str:
    """Return the name, cut to the longest allowed name with a distinguishing end."""
    return name if len(name) <= MAX_LENGTH else name[: MAX_LENGTH - _SUFFIX_LENGTH] + random


def machine_name(*, template: str, cluster: str, control_plane: str, uid: str, slot: str, taken: Collection[str] = ()) -> str:
    """Return the name for the next Machine of a control plane; `taken` names are skipped. Raises BadNamingTemplate."""
    data = {"cluster": {"name": cluster}, "kubeadmControlPlane": {"name": control_plane}}
    return generated_name(template=template or DEFAULT_TEMPLATE, data=data, uid=uid, slot=slot, taken=taken)


def generated_name(*, template: str, data: Mapping[str, Any], uid: str, slot: str, taken: Collection[str] = ()) -> str:
    """Return the template's result for these data and `.random`; `taken` names are skipped. Raises BadNamingTemplate."""
    if not _RANDOM.search(template):
        raise BadNamingTemplate("{{ .random }} is missing in machineNaming.template")
    for turn in range(min(len(taken), _MOST_TURNS) + 1):
        random = suffix(uid, f"{slot}#{turn}" if turn else slot)
        name = shortened(render(template, {**data, "random": random}), random)
        if name not in taken:
            return name
    # Names that depend on the suffix would have been free long before, so these do not: `{{ .random }}` is in a comment, say.
    raise BadNamingTemplate("machineNaming.template gives the same name again and again")


def label_value(name: str) -> str:
    """Return a name as a label value; an invalid one is replaced by its hash."""
    if len(name) <= 63 and re.fullmatch(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?", name):
        return name
    value = 0x811C9DC5
    for byte in name.encode():
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"hash_{base64.urlsafe_b64encode(value.to_bytes(4, 'big')).decode().rstrip('=')}_z"
