"""`clusterwright render kubeadmconfig/NAME`: print the bootstrap data of a node, to debug one that does not boot."""

from __future__ import annotations

import argparse
import asyncio
import sys
from base64 import b64decode
from typing import Any

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.codec import DecodeError, convert
from clusterwright.api.copying import replace
from clusterwright.api.core import Cluster
from clusterwright.api.kubernetes import ConfigMap, Secret
from clusterwright.api.meta import Json, Object, ObjectKey
from clusterwright.api.scheme import gvk_of
from clusterwright.cli import connect, subjects
from clusterwright.cli.files import read_bundle
from clusterwright.conditions import has
from clusterwright.controllers.kubeadmconfig.init_lock import NAME_SUFFIX
from clusterwright.controllers.kubeadmconfig.snapshot import find_owner
from clusterwright.kubeadm.certificates import Purpose, secret_name
from clusterwright.kubeadm.redaction import CannotRedact, redacted, secret_paths
from clusterwright.offline.bundle import BadBundle, Bundle, assemble
from clusterwright.offline.decide import decide_bundle
from clusterwright.offline.observation import WorkloadCluster
from clusterwright.runtime.client import Reader


class NothingToRender(Exception):
    """The data does not exist, and the next pass would not write it."""


def run(options: argparse.Namespace) -> int:
    """Run the command; returns the exit status."""
    try:
        subject, rest = subjects.parse(options.words, default="KubeadmConfig")
    except subjects.BadSubject as error:
        print(f"clusterwright render: {error}", file=sys.stderr)
        return 2
    if subject.kind != "KubeadmConfig" or rest:
        print(f"clusterwright render: {' '.join(options.words)!r} is not kubeadmconfig/NAME", file=sys.stderr)
        return 2
    name, namespace = subject.name, subject.namespace or options.namespace
    try:
        bundle = read_bundle(options.file) if options.file else asyncio.run(_live(options, name, namespace))
        print(render(bundle, name, namespace=namespace, show_secrets=options.show_secrets), end="")
    except (BadBundle, DecodeError, NothingToRender, CannotRedact) as error:
        print(f"clusterwright render: {error}", file=sys.stderr)
        return 1
    return 0


async def _live(options: argparse.Namespace, name: str, namespace: str) -> Bundle:
    connection = connect.resolve(options)
    async with connect.connected(connection) as client:
        return assemble(await gather(client, ObjectKey(namespace or connection.namespace, name)))


async def gather(reader: Reader, key: ObjectKey) -> list[Json]:
    """Return all objects that a pass over the config may read, from a live cluster; missing objects are left out. Raises ApiError."""
    config = await reader.get(KubeadmConfig, key)
    wanted: list[tuple[type[Object], str]] = [(KubeadmConfig, key.name), (Secret, key.name), (Secret, config.status.data_secret_name)]
    owner = await find_owner(reader, config, {})
    if owner is not None:
        cluster = owner.spec.cluster_name
        wanted += [(type(owner), owner.metadata.name), (Cluster, cluster), (ConfigMap, f"{cluster}{NAME_SUFFIX}")]
        wanted += [(Secret, secret_name(cluster, purpose)) for purpose in Purpose if purpose is not Purpose.KUBECONFIG]
    wanted += [(Secret, f.content_from.secret.name) for f in config.spec.files if f.content_from is not None]
    wanted += [(Secret, u.passwd_from.secret.name) for u in config.spec.users if u.passwd_from is not None]
    found = [await reader.find(gvk_of(kind), ObjectKey(key.namespace, name)) for kind, name in dict.fromkeys(wanted) if name]
    return [dict(obj.json) for obj in found if obj is not None]


def render(bundle: Bundle, name: str, *, namespace: str = "", show_secrets: bool = False) -> str:
    """Return the data of the config in the bundle, with a newline at its end.

    Raises NothingToRender with the reason, and CannotRedact.
    """
    json = _find(bundle, name, namespace)
    config = convert(json, KubeadmConfig)
    data = _stored(bundle, config) or _next(bundle, config)
    text = data if show_secrets else redacted(data, secret_paths(config.spec))
    return text if text.endswith("\n") else text + "\n"


def _find(bundle: Bundle, name: str, namespace: str) -> Json:
    found = [
        o
        for o in bundle.objects
        if o["kind"] == "KubeadmConfig" and o["metadata"]["name"] == name and namespace in ("", o["metadata"].get("namespace", ""))
    ]
    if not found:
        raise NothingToRender(f"the bundle has no KubeadmConfig {name}")
    if len(found) > 1:
        raise NothingToRender(f"the bundle has {len(found)} KubeadmConfigs {name}; select one with --namespace")
    return found[0]


def _stored(bundle: Bundle, config: KubeadmConfig) -> str:
    """Return the data that is already in the config's Secret, or empty."""
    if not config.status.data_secret_name:
        return ""
    for obj in bundle.objects:
        place = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if obj["kind"] == "Secret" and place == (config.metadata.namespace, config.status.data_secret_name):
            value = (obj.get("data") or {}).get("value", "")
            return b64decode(value).decode("utf-8", "replace")
    return ""


def _next(bundle: Bundle, config: KubeadmConfig) -> str:
    """Return the data that the next pass would write."""
    answer = decide_bundle(_ready_to_pass(bundle, config), f"KubeadmConfig/{config.metadata.namespace}/{config.metadata.name}")
    data: str | None = answer["data"].get(f"Secret/{config.metadata.name}/value")
    if data is None:
        raise NothingToRender(_why(config, answer))
    return data


def _ready_to_pass(bundle: Bundle, config: KubeadmConfig) -> Bundle:
    """Return the bundle, prepared so that the next pass goes as far as it can.

    Set Paused=False, because the first pass over a config only writes that. Treat a workload cluster that the bundle does not describe as
    reachable: a pass only creates a token there, and here it creates none.
    """
    reached = dict(bundle.observation.workload_clusters)
    objects: list[Json] = []
    for obj in bundle.objects:
        namespace, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        if obj["kind"] == "Cluster":
            reached.setdefault(f"{namespace}/{name}", WorkloadCluster(connected=True))
        if (obj["kind"], namespace, name) == ("KubeadmConfig", *config.key) and not has(config.status.conditions, "Paused"):
            generation = config.metadata.generation
            paused = {"type": "Paused", "status": "False", "reason": "NotPaused", "message": "", "observedGeneration": generation}
            status = obj.get("status") or {}
            obj = {**obj, "status": {**status, "conditions": [*(status.get("conditions") or ()), paused]}}
        objects.append(obj)
    return replace(bundle, objects=tuple(objects), observation=replace(bundle.observation, workload_clusters=reached))


def _why(config: KubeadmConfig, answer: dict[str, Any]) -> str:
    if answer["error"]:
        return f"no data would be written: {answer['error']}"
    conditions = (answer["object"] or {}).get("status", {}).get("conditions", ())
    said = next((c for c in conditions if c["type"] == "DataSecretAvailable"), None)
    if config.status.data_secret_name:
        return f"the data was generated already, but Secret {config.status.data_secret_name} is not in the bundle"
    if said is None or said["status"] == "True":
        return "no data would be written: the config has no owner, no Cluster, or is paused or being deleted"
    return f"no data would be written yet: {said['message'] or said['reason']}"
