"""Conditions, reasons, labels, annotations, finalizers and taints of the API reference are all there, spelled as it spells them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import clusterwright
from clusterwright.api import wellknown

DATA = Path(__file__).parent / "data"
CORE, KUBEADM = (DATA / "api-core.md").read_text(), (DATA / "api-kubeadm.md").read_text()
VALUES = {value for name, value in vars(wellknown).items() if name.isupper() and isinstance(value, str)}


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its header."""
    section = re.split(r"^#{2,3} ", text.split(f"\n{heading}\n")[1], flags=re.MULTILINE)[0]
    lines = [line for line in section.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


@pytest.mark.parametrize(
    ("heading", "least"), [("### 6.1 Labels", 20), ("### 6.2 Annotations", 45), ("### 6.3 Finalizers", 10), ("### 6.4 Taints", 2)]
)
def test_every_key_of_the_reference_has_a_name(heading: str, least: int) -> None:
    keys = {key.removesuffix("[/name]") for row in rows(CORE, heading) for key in re.findall(r"`([^`]+)`", row[0])}
    keys -= {"cluster.x-k8s.io/<contract>", '"true"'}  # a pattern, and a value
    assert len(keys) >= least
    assert keys - VALUES == set()


def condition_rows() -> list[tuple[str, str, str]]:
    """(kind, condition, words that stand in its row) for every condition of the reference."""
    found = []
    for kinds, types, words in [*rows(CORE, "### 5.2 Per kind"), *(row for row in rows(KUBEADM, "## 4. Conditions"))]:
        for kind in re.findall(r"\b(?:Cluster|Machine|Kubeadm|Extension|IPAddress)\w*", kinds.replace("(KCP-owned)", "")):
            types = re.sub(r"\(.*?\)", "", types)
            if "see " in types or "not implemented" in types:
                continue
            spelled = re.sub(r"\(.*?\)", "", words)
            found.extend((kind, type_.strip(), spelled) for type_ in re.split(r"[/;,]", types))
    return found


SOURCES = Path(clusterwright.__file__).parent
SAID = {
    word
    for folder in ("controllers", "conditions", "runtime")
    for path in (SOURCES / folder).rglob("*.py")
    for text in re.findall(r'"([^"\n]*)"', path.read_text())
    for word in re.findall(r"\b[A-Z][A-Za-z]+\b", text)
}
"""Every word in camel case of every text of the controllers."""
PROSE = {"True", "Machine", "MachineSet", "KCP"}
SAID_BY_OTHERS = {
    "IPAddressClaim": {"AllocationFailed", "PoolNotReady", "PoolExhausted"},  # by providers of addresses
    "Cluster": {  # ClusterCreating and ClusterUpgrading say all of these
        "ControlPlaneUpgradePending", "MachineDeploymentsCreatePending", "MachineDeploymentsUpgradePending",
        "MachinePoolsCreatePending", "MachinePoolsUpgradePending", "LifecycleHookBlocking",
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "type_", "words"), condition_rows())
def test_every_condition_and_reason_of_the_reference_is_used(kind: str, type_: str, words: str) -> None:
    spelled = set(re.findall(r"\b[A-Z][A-Za-z]+\b", words)) - PROSE
    assert spelled or "as MachineSet" in words
    assert {type_, *spelled} - SAID - SAID_BY_OTHERS.get(kind, set()) == set()


def test_all_deprecated_condition_types_are_used() -> None:
    section = CORE.split("### 5.3 Legacy")[1].split("Types: ")[1].split("`severity`")[0]
    types = set(re.findall(r"\b[A-Z][A-Za-z]+\b", re.sub(r"\(.*?\)", "", section)))
    assert len(types) > 10
    assert types - SAID == set()
