"""Make a bundle of a live cluster: its objects, related ones, their Events and CRDs. No secret value is kept.

The bundle has the objects with the Cluster's label, those that they own or refer to, transitively, and the time of recording.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from clusterwright.api.contract import crd_name
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey, Unstructured
from clusterwright.api.wellknown import BOOTSTRAP_TOKEN_SECRET_TYPE, COPIES_OF_THE_OBJECT
from clusterwright.api.wire import UNREADABLE
from clusterwright.offline import managers, ownership
from clusterwright.offline.complaints import REDACTED, references
from clusterwright.offline.detectors.certificate_authorities import mistake
from clusterwright.offline.listing import everything, webhooks_and_extensions
from clusterwright.offline.observation import API_VERSION
from clusterwright.offline.unreconciled import is_own_write, observed_generation, spec_changed, unreconciled
from clusterwright.offline.workings import about
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError, NotFound

if TYPE_CHECKING:
    from clusterwright.offline.survey import Surveyor

CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_SENSITIVE: Final = frozenset({"token", "password", "passwd", "certificateKey", "secretKey", "accessKey", "clientSecret", "privateKey"})
_SILENT: Final = frozenset({"Secret", "ConfigMap"})
_FREE_TEXTS: Final = frozenset({"preKubeadmCommands", "postKubeadmCommands", "bootCommands", "sshAuthorizedKeys", "additionalConfig"})
"""Fields of a bootstrap configuration with free text from users, which may include passwords."""
_TOKEN_FACTS: Final = frozenset(
    {"token-id", "expiration", "description", "usage-bootstrap-signing", "usage-bootstrap-authentication", "auth-extra-groups"}
)
"""The keys in the Secret of a bootstrap token that are not secret."""
_PROBE_SUCCESS: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


async def record(
    client: Client,
    cluster: ObjectKey,
    now: datetime,
    surveyor: Surveyor | None = None,
    *,
    running: Json | None = None,
    keep_secrets: bool = False,
) -> list[Json]:
    """Return the documents of a bundle. Raises NotFound if the Cluster does not exist.

    Kinds that may not be listed are left out, and the Observation names them. The same applies to a workload
    cluster that cannot be reached. `running`: the controllers' report on themselves; None: ask them next to the API server.
    `keep_secrets` is for a bundle that is used at once and never written.
    """
    shown: Callable[[Mapping[str, Any]], Json] = dict if keep_secrets else redacted
    subject = await client.live.get(GroupVersionKind("cluster.x-k8s.io", "v1beta2", "Cluster"), cluster)
    all_there = await everything(client, cluster.namespace)
    found = [subject, *(o for o in all_there.objects if o.json != subject.json)]
    related = ownership.related((o for o in found if o.kind != "Event"), subject)
    events = [o for o in found if o.kind == "Event" and _involved(o) in related]
    kept = [o for o in found if o.kind != "Event" and _name(o) in related]
    documents = [shown(o.json) for o in (*kept, *events)]
    documents += await _definitions(client, kept)
    documents += await _cluster_class(client, subject)
    documents += [shown(o.json) for o in await webhooks_and_extensions(client, all_there)]
    jsons = [o.json for o in kept]
    running = await ask_controllers(client, cluster.namespace, cluster.name) if running is None else running
    if running is not None:
        running = about(running, related)
    if any(unreconciled(o, now) is not None or not o.at("status") for o in kept if o.kind not in _SILENT):
        documents += await _managers(client)
    observation = await observation_of(jsons, cluster, now, surveyor, running, seen=all_there.seen, unseen=all_there.unseen, shown=shown)
    observation["changed"] = {
        _name(o): f"{changed:%Y-%m-%dT%H:%M:%SZ}"
        for o in kept
        if (observed_generation(o) or 0) < (o.at("metadata", "generation") or 0)
        and not is_own_write(o)
        and (changed := spec_changed(o)) is not None
    }
    observation["suspicions"] = {_name(o): "|".join(wrong) for o in kept if o.kind == "Secret" and (wrong := mistake(o, now)) is not None}
    documents.append(observation)
    return documents


async def observation_of(
    objects: Sequence[Mapping[str, Any]],
    cluster: ObjectKey,
    now: datetime,
    surveyor: Surveyor | None,
    running: Json | None = None,
    *,
    seen: Iterable[str],
    unseen: Sequence[Json] = (),
    shown: Callable[[Mapping[str, Any]], Json] = dict,
) -> Json:
    """Return the Observation of a cluster with these objects, the Cluster first, after reading its workload cluster."""
    kept = [Unstructured(o) for o in objects]
    observation: Json = {"apiVersion": API_VERSION, "kind": "Observation", "now": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    observation |= {"seen": list(seen), "unseen": list(unseen)}
    observation |= {"running": running, "features": running.get("features") or {}} if running else {}
    survey = await surveyor.survey(cluster, _leaving(kept)) if surveyor is not None else None
    if survey is not None:
        survey |= probe_as_said(kept[0])
        survey["objects"] = [shown(o) for o in survey["objects"]]
        observation["workloadClusters"] = {str(cluster): survey}
    elif surveyor is not None and surveyor.failure:
        observation["unreachable"] = surveyor.failure
    return observation


async def ask_controllers(client: Client, namespace: str, cluster: str = "") -> Json | None:
    """Return the report of the controllers in the process of the API server, or None if there are none or the caller may not ask them.

    `cluster`: the Cluster whose verdicts are wanted; empty: all of the namespace.
    """
    try:
        told = msgspec.json.decode(
            await client.raw_get("/traces", query=(("namespace", namespace), *([("cluster", cluster)] if cluster else [])))
        )
    except (ApiError, *UNREADABLE):
        return None
    return told if isinstance(told, dict) and "controllers" in told else None


def probe_as_said(cluster: Unstructured) -> Json:
    """Return the Cluster's condition of a failed probe: our connection does not prove that its controller had one."""
    conditions = cluster.at("status", "conditions") or ()
    probe = next((c for c in conditions if isinstance(c, Mapping) and c.get("type") == "RemoteConnectionProbe"), {})
    if probe.get("status") != "False":
        return {}
    message = str(probe.get("message"))
    if message.startswith(f"Secret {cluster.metadata.name}-kubeconfig: "):
        return {"refusal": message}
    from clusterwright.workload.clusters import FAILURE_THRESHOLD  # imported here, because quick verdicts do not need it

    succeeded = _PROBE_SUCCESS.search(message)
    return {"lastProbeSuccess": succeeded[0] if succeeded else None, "consecutiveFailures": FAILURE_THRESHOLD}


def _leaving(objects: Iterable[Unstructured]) -> list[str]:
    """Return the Nodes of Machines that are being deleted."""
    machines = [o for o in objects if o.kind == "Machine" and o.metadata.deletion_timestamp is not None]
    return [str(name) for m in machines if (name := m.at("status", "nodeRef", "name"))]


def _name(obj: Unstructured) -> str:
    return ownership.name_of(obj.kind, *obj.key)


def _involved(event: Unstructured) -> str:
    involved = event.at("involvedObject") or event.at("regarding") or {}
    return ownership.name_of(str(involved.get("kind")), str(involved.get("namespace") or ""), str(involved.get("name")))


async def _definitions(client: Client, objects: Iterable[Unstructured]) -> list[Json]:
    """Return the CRDs of the kinds in play, with their labels but without their schemas."""
    wanted = {(o.gvk.group, o.kind) for o in objects if "." in o.gvk.group}
    wanted |= {(r.group, r.kind) for o in objects for r in references(o.at("spec"))}
    wanted |= {(group, kind.removesuffix("Template")) for group, kind in wanted}  # what is made from a template
    found = []
    for group, kind in sorted(wanted):
        try:
            crd = await client.live.get(CRD, ObjectKey("", crd_name(group, kind)))
        except ApiError:
            continue
        found.append(slim_definition(crd))
    return found


def slim_definition(crd: Unstructured) -> Json:
    """Return a CRD with its labels, names and versions, but without its schemas."""
    spec = crd.at("spec") if isinstance(crd.at("spec"), Mapping) else {}
    versions = [{k: v for k, v in version.items() if k in {"name", "served", "storage"}} for version in spec.get("versions") or []]
    names = spec.get("names") or {}
    slim = {
        "group": spec.get("group"),
        "scope": spec.get("scope"),
        "names": {"kind": names.get("kind"), "plural": names.get("plural")},
        "versions": versions,
    }
    metadata = {"name": crd.metadata.name, "labels": dict(crd.metadata.labels)}
    return {"apiVersion": CRD.api_version, "kind": CRD.kind, "metadata": metadata, "spec": slim}


async def _cluster_class(client: Client, cluster: Unstructured) -> list[Json]:
    """Return the ClusterClass, where it lives in another namespace."""
    reference = cluster.at("spec", "topology", "classRef")
    if not isinstance(reference, Mapping) or reference.get("namespace") in (None, "", cluster.key.namespace):
        return []
    kind = GroupVersionKind("cluster.x-k8s.io", "v1beta2", "ClusterClass")
    try:
        found = await client.live.get(kind, ObjectKey(str(reference["namespace"]), str(reference.get("name"))))
    except NotFound:
        return []
    return [redacted(found.json)]


async def _managers(client: Client) -> list[Json]:
    """Return the Deployments of controllers, and the Providers, that may be read."""
    found: dict[ObjectKey, Unstructured] = {}
    for selector in managers.SELECTORS:
        try:
            listed = await client.live.list(GroupVersionKind("apps", "v1", "Deployment"), labels=selector)
        except ApiError:
            continue
        found |= {o.key: o for o in listed}
    try:
        providers = await client.live.list(managers.PROVIDER)
    except ApiError:
        providers = []
    return [managers.slim(o) for o in (*found.values(), *providers)]


def redacted(obj: Mapping[str, Any]) -> Json:
    """Return the object without secret values, managedFields and annotations that repeat its spec. The keys of a Secret stay."""
    copy: Json = {k: v for k, v in obj.items() if k != "metadata"}
    copy["metadata"] = {k: v for k, v in (obj.get("metadata") or {}).items() if k != "managedFields"}
    annotations = copy["metadata"].get("annotations")
    if isinstance(annotations, Mapping):
        copy["metadata"]["annotations"] = {k: v for k, v in annotations.items() if k not in COPIES_OF_THE_OBJECT}
    if obj.get("kind") == "Secret":
        for name in ("data", "stringData"):
            if isinstance(copy.get(name), Mapping):
                kept = _TOKEN_FACTS if obj.get("type") == BOOTSTRAP_TOKEN_SECRET_TYPE else frozenset[str]()
                copy[name] = {k: v if k in kept else "" for k, v in copy[name].items()}
        if isinstance(copy["metadata"].get("annotations"), Mapping):
            copy["metadata"]["annotations"] = _hidden(copy["metadata"]["annotations"])  # they often repeat what the Secret holds
        return copy
    for name in ("spec", "data", "status"):
        if name in copy:
            copy[name] = _blotted(copy[name])
    return copy


def _blotted(value: Any, inside_files: bool = False) -> Any:
    if isinstance(value, Mapping):
        if _patches_secret(value):
            return {k: _hidden(v) if k in {"value", "valueFrom"} else v for k, v in value.items()}
        return {
            k: _hidden(v)
            if k in _FREE_TEXTS or (isinstance(v, str) and (k in _SENSITIVE or (inside_files and k == "content")))
            else _blotted(v, k == "files")
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_blotted(item, inside_files) for item in value]
    return value


def _patches_secret(value: Mapping[str, Any]) -> bool:
    """Return whether this is an operation of a JSON patch on a field that is hidden elsewhere."""
    path = value.get("path")
    if "op" not in value or not isinstance(path, str):
        return False
    return bool((_SENSITIVE | _FREE_TEXTS | {"files"}) & set(path.split("/")))


def _hidden(value: Any) -> Any:
    """Return the value with every text in it replaced; its keys and lengths of lists stay."""
    if isinstance(value, Mapping):
        return {k: _hidden(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_hidden(item) for item in value]
    return REDACTED if isinstance(value, str) and value else value
