"""Read a provider's release: which of its objects are installed, which are left out and why, and its program. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from clusterwright.api.contract import CONTRACT_VERSIONS, NoContract, resolve_version
from clusterwright.api.copying import replace
from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.wellknown import CONTRACT_LABEL_PREFIX, PROVIDER_LABEL
from clusterwright.providers.deployment import BadRelease, Program, program

DNS_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MOST_OBJECTS: Final = 2000
_ORDER: Final = ("Namespace", "CustomResourceDefinition", "ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")
# fmt: off
_LEFT_OUT: Final[Mapping[tuple[str, str], str]] = {
    ("apps", "Deployment"):              "runs as a process of this machine",
    ("apps", "StatefulSet"):             "no containers run here",
    ("apps", "DaemonSet"):               "no containers run here",
    ("", "Pod"):                         "no containers run here",
    ("batch", "Job"):                    "no containers run here",
    ("batch", "CronJob"):                "no containers run here",
    ("", "Service"):                     "the API server calls the process on loopback",
    ("policy", "PodDisruptionBudget"):   "no containers run here",
    ("autoscaling", "HorizontalPodAutoscaler"): "no containers run here",
    ("networking.k8s.io", "NetworkPolicy"): "no containers run here",
    ("cert-manager.io", "*"):            "certificates are made here",
    ("monitoring.coreos.com", "*"):      "its kinds are not served",
}
"""Objects that are not installed, with the reasons; `*`: every kind of the group."""
_TYPES: Final = (
    ("infrastructure-",    "InfrastructureProvider",   "infrastructure.cluster.x-k8s.io"),
    ("bootstrap-",         "BootstrapProvider",        "bootstrap.cluster.x-k8s.io"),
    ("control-plane-",     "ControlPlaneProvider",     "controlplane.cluster.x-k8s.io"),
    ("ipam-",              "IPAMProvider",             "ipam.cluster.x-k8s.io"),
    ("runtime-extension-", "RuntimeExtensionProvider", "runtime.cluster.x-k8s.io"),
    ("addon-",             "AddonProvider",            "addons.cluster.x-k8s.io"),
)
"""Prefixes of labels, with clusterctl's types, and the API groups of providers without the prefix."""
_CONTRACTED: Final = frozenset({"infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"})
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A provider's release."""

    name: str
    """The name of clusterctl's Provider, for example `infrastructure-vsphere`."""
    provider: str
    """The name without its type."""
    type: str
    version: str
    namespace: str
    objects: tuple[Json, ...]
    """The objects to install, in their order."""
    left_out: tuple[str, ...]
    program: Program


def read(documents: Iterable[Any], *, name: str = "", deployment: str = "", container: str = "") -> Release:
    """Return the release in the documents of a file; raises BadRelease."""
    objects = _checked(_flat(documents))
    deployments = [obj for obj in objects if _gvk(obj).group == "apps" and obj["kind"] == "Deployment"]
    chosen = _deployment(deployments, deployment)
    kept = sorted((obj for obj in objects if not _reason(obj)), key=_rank)
    namespace = _namespace(objects, chosen)
    label = name or _named(_label(objects, chosen), kept)
    provider, kind = _type(label, kept)
    left_out = [f"{obj['kind']} {obj['metadata']['name']}: {_reason(obj)}" for obj in objects if _reason(obj) and obj is not chosen]
    found = _with_certificates(program(chosen, container), objects) if chosen is not None else _plain(kept)
    return Release(
        name=label,
        provider=provider,
        type=kind,
        version=_version(chosen, found),
        namespace=namespace,
        objects=tuple(kept),
        left_out=(*left_out, *found.missing),
        program=found,
    )


def _flat(documents: Iterable[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, dict) and str(document.get("kind", "")) == "List" and isinstance(document.get("items"), list):
            yield from document["items"]
        elif document is not None:
            yield document


def _checked(documents: Iterable[Any]) -> list[Json]:
    objects: list[Json] = []
    for number, document in enumerate(documents, 1):
        is_object = isinstance(document, dict) and document.get("apiVersion") and document.get("kind")
        if not is_object or not isinstance(document.get("metadata"), dict) or not document["metadata"].get("name"):
            raise BadRelease(f"document {number} is not an object with apiVersion, kind and metadata.name")
        objects.append(document)
        if len(objects) > MOST_OBJECTS:
            raise BadRelease(f"more than {MOST_OBJECTS} objects: this is not the release of a provider")
    if not objects:
        raise BadRelease("there are no objects in it")
    return objects


def _gvk(obj: Json) -> GroupVersionKind:
    return GroupVersionKind.of(str(obj["apiVersion"]), str(obj["kind"]))


def _reason(obj: Json) -> str:
    """Return why an object is not installed; empty if it is."""
    gvk = _gvk(obj)
    return _LEFT_OUT.get((gvk.group, gvk.kind)) or _LEFT_OUT.get((gvk.group, "*")) or ""


def _rank(obj: Json) -> int:
    """Return the place of an object in the order of installation. Webhooks come last: they refuse writes until the process runs."""
    kind = obj["kind"]
    if kind.endswith("WebhookConfiguration"):
        return len(_ORDER) + 2
    is_known = not _gvk(obj).group or (_gvk(obj).group.endswith(".k8s.io") and "cluster.x-k8s.io" not in _gvk(obj).group)
    return _ORDER.index(kind) if kind in _ORDER else len(_ORDER) + (0 if is_known else 1)


def _deployment(deployments: Sequence[Json], name: str) -> Json | None:
    named = [obj for obj in deployments if name in {"", obj["metadata"]["name"]}]
    known = ", ".join(str(obj["metadata"]["name"]) for obj in deployments)
    if name and not named:
        raise BadRelease(f"there is no Deployment {name}; there are: {known or 'none'}")
    if len(named) > 1:
        raise BadRelease(
            f"there are several Deployments, {known}: choose one with --deployment, and add the others under names of their own"
        )
    return named[0] if named else None


def _namespace(objects: Sequence[Json], deployment: Json | None) -> str:
    if deployment is not None:
        return str(deployment["metadata"].get("namespace") or "default")
    found = {str(obj["metadata"].get("namespace")) for obj in objects if obj["kind"] == "ServiceAccount"}
    return found.pop() if len(found) == 1 and found != {"None"} else "default"


def _plain(objects: Sequence[Json]) -> Program:
    """Return the program of a release without a Deployment: only its account is known."""
    accounts = [str(obj["metadata"]["name"]) for obj in objects if obj["kind"] == "ServiceAccount"]
    if len(accounts) != 1:
        raise BadRelease(
            f"there is no Deployment, and {len(accounts)} ServiceAccounts: the one ServiceAccount of the provider's process is expected"
        )
    return Program(account=accounts[0])


def _with_certificates(found: Program, objects: Sequence[Json]) -> Program:
    """Return the program with the mounts marked whose Secret cert-manager would make: they get certificates of ours."""
    made = {str((obj.get("spec") or {}).get("secretName")) for obj in objects if _gvk(obj).group == "cert-manager.io"}
    mounts = [
        replace(mount, kind="Certificate")
        if mount.kind == "Secret" and (mount.name in made or mount.path.endswith("/serving-certs"))
        else mount
        for mount in found.mounts
    ]
    return replace(found, mounts=tuple(mounts))


def _label(objects: Sequence[Json], deployment: Json | None) -> str:
    for obj in (*([deployment] if deployment is not None else ()), *objects):
        found = (obj["metadata"].get("labels") or {}).get(PROVIDER_LABEL)
        if found and DNS_LABEL.fullmatch(str(found)):
            return str(found)
    raise BadRelease(
        f"no object has the label {PROVIDER_LABEL}, which names the provider: name it with --name, for example infrastructure-acme"
    )


def _named(label: str, objects: Sequence[Json]) -> str:
    """Return a label with the prefix of its type, as clusterctl names providers: a project may use one label for all of its providers."""
    if any(label.startswith(prefix) for prefix, *_ in _TYPES):
        return label
    groups = {obj["spec"].get("group") for obj in definitions(objects)}
    found = [prefix for prefix, _, group in _TYPES if group in groups]
    return f"{found[0]}{label}" if len(found) == 1 else label


def _type(name: str, objects: Sequence[Json]) -> tuple[str, str]:
    """Return the name of a provider without its type, and clusterctl's type."""
    if not DNS_LABEL.fullmatch(name):
        raise BadRelease(f"the name {name!r} is not a DNS label: lower-case letters, digits and dashes are expected")
    for prefix, kind, _ in _TYPES:
        if name.startswith(prefix):
            return name.removeprefix(prefix), kind
    groups = {obj["spec"].get("group") for obj in definitions(objects)}
    for _, kind, group in _TYPES:
        if group in groups:
            return name, kind
    return name, ""


def _version(deployment: Json | None, found: Program) -> str:
    labels = (deployment or {"metadata": {}})["metadata"].get("labels") or {}
    tag = found.image.rpartition("/")[2].partition("@")[0].partition(":")[2]
    return str(labels.get("app.kubernetes.io/version") or tag)


def definitions(objects: Iterable[Json]) -> list[Json]:
    """Return the CustomResourceDefinitions among objects."""
    return [obj for obj in objects if obj["kind"] == "CustomResourceDefinition" and isinstance(obj.get("spec"), dict)]


def contract_problems(objects: Iterable[Json]) -> list[str]:
    """Return what definitions lack so that core controllers can read their objects.

    Only the groups of Machines' and Clusters' references are judged, in which every kind is one or a template of one, or a provider's own.
    """
    problems = []
    for crd in definitions(objects):
        if crd["spec"].get("group") not in _CONTRACTED:
            continue
        name, labels = crd["metadata"]["name"], crd["metadata"].get("labels") or {}
        try:
            resolve_version(crd["metadata"])
        except NoContract:
            wanted = " or ".join(f"{CONTRACT_LABEL_PREFIX}{contract}" for contract in CONTRACT_VERSIONS)
            problems.append(f"{name} has no label {wanted}: Clusters and Machines cannot refer to its objects")
            continue
        served = {version.get("name") for version in crd["spec"].get("versions") or () if version.get("served")}
        for contract in CONTRACT_VERSIONS:
            named = [one for one in str(labels.get(f"{CONTRACT_LABEL_PREFIX}{contract}") or "").split("_") if one]
            problems += [
                f"{name}: the label {CONTRACT_LABEL_PREFIX}{contract} names {v}, which is not served" for v in named if v not in served
            ]
    return problems
