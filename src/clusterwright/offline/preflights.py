"""Preflight checks that keep a MachineSet from making Machines: which one, about which object, and whose move it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

ABOUT: Final = "preflight:"
"""What a complaint about a failed check is about, before the name of the check."""
FAILED: Final = re.compile(r'^[* ]*+(?P<what>[^\n]*?) \("(?P<check>\w+)" preflight check failed\)', re.MULTILINE)
_CONTROL_PLANE: Final = re.compile(r"^(?P<kind>[A-Z]\w+) (?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>[a-z0-9.-]+) (?:is|has) ")
_VERSIONS: Final = re.compile(r"MachineSet version \((?P<ours>[^)]+)\).*?ControlPlane version \((?P<theirs>[^)]+)\)")
VERSION: Final = "spec.template.spec.version"


@dataclass(frozen=True, slots=True)
class Check:
    """What a failed check means for those who own the MachineSet."""

    is_wait: bool
    """Whether it passes by itself once the control plane is where it should be."""
    next: str
    """`{theirs}` is the version of the control plane."""
    command: str = "edit {}"


CHECKS: Final[Mapping[str, Check]] = {
    "ControlPlaneIsStable": Check(
        True, "wait for the control plane: Machines are made when it is neither made nor upgraded", "describe {}"
    ),
    "ControlPlaneVersionSkew": Check(True, "wait: the topology gives workers the version of the control plane, {theirs}", "describe {}"),
    "KubernetesVersionSkew": Check(
        False, f"set {VERSION} to {{theirs}} or at most three minor versions below it, or upgrade the control plane first"
    ),
    "KubeadmVersionSkew": Check(
        False,
        f"set {VERSION} to one with the minor version of the control plane, {{theirs}}, or upgrade the control plane first; if "
        "the machines get the kubeadm of the control plane otherwise, skip the check (docs/topology.md, pinned workers)",
    ),
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A check that failed, as a MachineSet tells it."""

    check: str
    what: str
    kind: str = ""
    name: str = ""
    """The object that it is about, where the words name one."""
    theirs: str = ""
    """The version of the control plane, where the words name it."""
    raw: str = ""

    @property
    def rule(self) -> Check:
        """What it means; one that is not known is taken for a wait."""
        return CHECKS.get(self.check, Check(True, "wait until the check passes", "describe {}"))


def failures(text: str) -> Iterator[Failure]:
    """Yield the checks that a text says have failed."""
    for found in FAILED.finditer(text):
        what = found["what"]
        named, versions = _CONTROL_PLANE.match(what), _VERSIONS.search(what)
        yield Failure(
            found["check"],
            what,
            named["kind"] if named else "",
            named["name"] if named else "",
            versions["theirs"] if versions else "its version",
            found[0].lstrip("* "),
        )
