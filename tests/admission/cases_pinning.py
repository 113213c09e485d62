"""Cases of workers that a topology pins to a version. The Cluster of the cases is at v1.33.4."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from admission.admission_cases import (
    ALL_GATES,
    FACTS,
    MD_TOPOLOGY,
    MP_TOPOLOGY,
    Case,
    Json,
    case,
    merge,
    of_class,
    plane,
    user,
    without,
    worker,
)
from clusterwright.admission.clusterfacts import Found
from clusterwright.topology.pinning import GATE

T = "spec.topology"
DEFER = "topology.cluster.x-k8s.io/defer-upgrade"
HOLD = "topology.cluster.x-k8s.io/hold-upgrade-sequence"
KINDS = (
    ("machineDeployments", "MachineDeployment", MD_TOPOLOGY, "topology.cluster.x-k8s.io/deployment-name"),
    ("machinePools", "MachinePool", MP_TOPOLOGY, "topology.cluster.x-k8s.io/pool-name"),
)


def existing(kind: str, label: str, name: str, version: str, **more: Any) -> Found:
    return Found((merge(worker(kind, version, **more).objects[0], {"metadata": {"labels": {label: name}}}),))


def _rows(field: str, kind: str, base: Json, label: str) -> Iterator[Case]:
    at, parts = f"{T}.workers.{field}[{base['name']}].version", "deployments" if kind == "MachineDeployment" else "pools"

    def entry(version: str | None = None, topology: str = "v1.33.4", annotation: str = "") -> Json:
        made = base | ({"version": version} if version else {}) | ({"metadata": {"annotations": {annotation: ""}}} if annotation else {})
        return {"spec": {"topology": {"version": topology, "workers": {field: [made]}}}}

    def facts(version: str = "v1.33.4", control_plane: Found | None = None) -> Any:
        made: Any = {parts: existing(kind, label, base["name"], version)}
        return of_class(control_plane=control_plane or plane(), **made)

    def annotated(change: Json, key: str, value: str = "") -> Json:
        return change | {"metadata": {"annotations": {key: value}}}

    kept: Any = {"old": entry(), "facts": facts()}
    off: Any = {"facts": FACTS, "says": GATE, "gates": without(GATE), "keeps_gates": without(GATE)}
    yield from case("CL-42", "Cluster", entry("v1.33.4"), at, entry(), **off)
    yield from case("CL-42", "Cluster", entry("v1.33.4"), at, entry("v1.33.3"), old=entry("v1.33.3"), **off)
    yield from case("CL-42", "Cluster", entry(), at, entry("v1.33.3"), old=entry("v1.33.3"), **off)
    yield from case("CL-43", "Cluster", entry("1.33.4"), at, entry("v1.33.4"), facts=FACTS, says="must start with v")
    yield from case("CL-43", "Cluster", entry("v1.33"), at, entry(), facts=FACTS, says="semantic")

    # never newer than the topology, at birth and later, nor than a control plane that is still on its way
    yield from case("CL-44", "Cluster", entry("v1.33.5"), at, entry("v1.33.4"), facts=FACTS, says="spec.topology.version v1.33.4")
    yield from case("CL-44", "Cluster", entry("v1.34.0", "v1.34.0"), at, entry("v1.33.4", "v1.34.0"), says="which runs v1.33.4", **kept)
    on_the_way = plane("v1.33.4", "v1.33.1")
    yield from case(
        "CL-44",
        "Cluster",
        entry("v1.33.4"),
        at,
        entry("v1.33.1"),
        says="which runs v1.33.1",
        **kept | {"facts": facts("v1.33.1", on_the_way)},
    )
    # at most three minor versions older
    yield from case("CL-45", "Cluster", entry("v1.29.9"), at, entry("v1.30.0"), facts=FACTS, says="3 minor versions older")
    yield from case("CL-46", "Cluster", entry("v1.33.3"), at, entry("v1.33.4"), facts=of_class({"kubernetesVersions": ["v1.33.4"]}))
    for annotation in (DEFER, HOLD):
        yield from case("CL-47", "Cluster", entry("v1.33.4", annotation=annotation), at, entry(annotation=annotation), facts=FACTS)
    yield from case(
        "CL-47",
        "Cluster",
        entry("v1.33.4", annotation=DEFER),
        at,
        entry("v1.33.4", annotation=HOLD),
        **kept | {"old": entry("v1.33.4", annotation=HOLD)},
    )

    # only while nothing else is being upgraded; pinned workers themselves do not count
    moving = facts(control_plane=plane(status="v1.33.3"))
    yield from case("CL-48", "Cluster", entry("v1.33.4"), at, entry("v1.33.4"), **kept | {"facts": moving, "keeps_facts": facts()})
    yield from case(
        "CL-48", "Cluster", entry("v1.33.4"), at, entry("v1.33.4"), **kept | {"facts": facts("v1.33.3"), "keeps_facts": facts()}
    )
    hook = "runtime.cluster.x-k8s.io/pending-hooks"
    waiting = annotated(entry("v1.33.4"), hook, "AfterClusterUpgrade")
    yield from case("CL-48", "Cluster", waiting, at, annotated(entry("v1.33.4"), hook, "AfterWorkersUpgrade"), **kept)
    raised = kept | {"old": entry("v1.32.0"), "facts": facts("v1.32.0", plane(status="v1.33.3")), "keeps_facts": facts("v1.32.0")}
    yield from case("CL-48", "Cluster", entry("v1.32.1"), at, entry("v1.32.1"), **raised)

    # never decreased
    yield from case("CL-49", "Cluster", entry("v1.33.3"), at, entry("v1.33.4"), says="from v1.33.4", **kept)
    yield from case(
        "CL-49", "Cluster", entry("v1.32.0"), at, entry("v1.32.1"), **kept | {"old": entry("v1.32.1"), "facts": facts("v1.32.0")}
    )
    unsafe = annotated(entry("v1.33.3"), "unsafe.topology.cluster.x-k8s.io/disable-update-version-check")
    yield from case("CL-49", "Cluster", entry("v1.33.3"), at, unsafe, **kept)
    yield from case("CL-50", "Cluster", entry(), at, entry("v1.33.3"), **kept | {"old": entry("v1.33.3"), "facts": facts("v1.33.3")})
    yield from case(
        "CL-50",
        "Cluster",
        entry(),
        at,
        entry(),
        old=entry("v1.33.3"),
        facts=FACTS,
        gates=ALL_GATES,
        keeps_gates=without(GATE),
        says="raise it first",
    )

    # an upgrade of the topology may not leave pinned workers behind: by their version, or by one that still runs
    up = entry("v1.31.0", "v1.34.0")
    names: Any = {"says": f'{kind} "{base["name"]}" is pinned to'}
    behind = facts("v1.30.9")
    stays = entry("v1.30.9", "v1.33.5")
    yield from case("CL-51", "Cluster", entry("v1.30.9", "v1.34.0"), f"{T}.version", stays, old=entry("v1.30.9"), facts=behind, **names)
    yield from case("CL-51", "Cluster", up, f"{T}.version", up, old=entry("v1.31.0"), facts=behind, keeps_facts=facts("v1.31.0"), **names)
    yield from case(
        "CL-51", "Cluster", up, f"{T}.version", entry("v1.31.0", "v1.33.5"), old=entry("v1.30.9"), facts=facts("v1.31.0"), **names
    )


def _running() -> Iterator[Case]:
    """Machines and Nodes that still run an older version than their pinned workers count, too."""
    up = {"spec": {"topology": {"version": "v1.34.0", "workers": {"machineDeployments": [MD_TOPOLOGY | {"version": "v1.31.0"}]}}}}
    old: Json = merge(up, {"spec": {"topology": {"version": "v1.33.4"}}})
    deployment = existing("MachineDeployment", KINDS[0][3], "md", "v1.31.0")
    machine = {"metadata": {"labels": {"a": "b"}}, "spec": {"version": "v1.30.0"}}

    def of(version: str) -> Any:
        return of_class(control_plane=plane(), deployments=deployment, machines=(merge(machine, {"spec": {"version": version}}),))

    yield from case(
        "CL-51", "Cluster", up, f"{T}.version", up, old=old, facts=of("v1.30.0"), keeps_facts=of("v1.31.0"), says="runs v1.30.0"
    )
    up = {"spec": {"topology": {"version": "v1.34.0", "workers": {"machinePools": [MP_TOPOLOGY | {"version": "v1.31.0"}]}}}}
    old = merge(up, {"spec": {"topology": {"version": "v1.33.4"}}})
    pool = existing("MachinePool", KINDS[1][3], "mp", "v1.31.0", status={"nodeRefs": [{"name": "node"}]})

    def with_node(version: str) -> Any:
        node = {"metadata": {"name": "node"}, "status": {"nodeInfo": {"kubeletVersion": version}}}
        return of_class(control_plane=plane(), pools=pool, nodes=Found((node,)))

    yield from case(
        "CL-51",
        "Cluster",
        up,
        f"{T}.version",
        up,
        old=old,
        facts=with_node("v1.30.0"),
        keeps_facts=with_node("v1.31.0"),
        says="runs v1.30.0",
    )


def _kept_pools() -> Iterator[Case]:
    """CL-37, CL-38: pinned workers do not hold up an upgrade of the topology, others do."""
    for field, kind, base, label in KINDS:
        change = {"spec": {"topology": {"version": "v1.34.0", "workers": {field: [base | {"version": "v1.32.0"}]}}}}
        parts: Any = {"deployments" if kind == "MachineDeployment" else "pools": existing(kind, label, base["name"], "v1.32.0")}
        facts = of_class(control_plane=plane(), **parts)
        free = {"spec": {"topology": {"version": "v1.34.0", "workers": {field: [base]}}}}
        was: Json = merge(change, {"spec": {"topology": {"version": "v1.33.4"}}})
        id = "CL-37" if kind == "MachineDeployment" else "CL-38"
        yield from case(id, "Cluster", free, f"{T}.version", change, old=was, facts=facts, says=f"still {kind}s completing")


def _of_classes() -> Iterator[Case]:
    for field, _, base, _ in KINDS:
        pinned = user({"workers": {field: [base | {"version": "v1.33.3"}]}})
        listed, short = ({"spec": {"kubernetesVersions": v}} for v in (["v1.33.3", "v1.33.4"], ["v1.33.4"]))
        yield from case(
            "CC-36",
            "ClusterClass",
            short,
            "spec.kubernetesVersions",
            listed,
            old=listed,
            facts=pinned,
            says=f"{field}[{base['name']}]",
        )


PINNING_CASES: list[Case] = [
    *(c for row in KINDS for c in _rows(*row)),
    *_running(),
    *_kept_pools(),
    *_of_classes(),
]
