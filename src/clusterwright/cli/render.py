"""`clusterwright render kubeadmconfig/NAME`: the bootstrap data of a node, for people who debug one that does not boot."""

from __future__ import annotations

import argparse
import sys
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from clusterwright.api.bootstrap import KubeadmConfig
from clusterwright.api.codec import DecodeError, convert
from clusterwright.api.meta import Json
from clusterwright.conditions import has
from clusterwright.kubeadm.redaction import CannotRedact, redacted, secret_paths
from clusterwright.offline.bundle import BadBundle, Bundle, parse
from clusterwright.offline.decide import decide_bundle
from clusterwright.offline.observation import WorkloadCluster

_DESCRIPTION = """\
Print the bootstrap data of a KubeadmConfig: as stored, if its Secret is there, else as the next pass of the controller would
write it. FILE holds the config, its Machine, its Cluster and their Secrets, as `kubectl get -o yaml` prints them.
"""


class NothingToRender(Exception):
    """There is no data, and the next pass would not write any."""


def run(argv: Sequence[str]) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(argv)
    kind, _, name = options.subject.rpartition("/")
    if kind.lower() not in ("kubeadmconfig", "kubeadmconfigs"):
        print("clusterwright render: the subject must be kubeadmconfig/NAME", file=sys.stderr)
        return 2
    try:
        text = sys.stdin.read() if options.file == "-" else Path(options.file).read_text(encoding="utf-8")
        print(render(parse(text), name, namespace=options.namespace, show_secrets=options.show_secrets), end="")
    except (OSError, BadBundle, DecodeError, NothingToRender, CannotRedact) as error:
        print(f"clusterwright render: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="clusterwright render", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("subject", metavar="kubeadmconfig/NAME")
    parser.add_argument("--from", dest="file", required=True, metavar="FILE", help="a bundle of objects; - is standard input")
    parser.add_argument("--namespace", "-n", default="", help="needed only if the bundle has several configs of this name")
    parser.add_argument("--show-secrets", action="store_true", help="do not hide keys, tokens, passwords and contents from Secrets")
    return parser


def render(bundle: Bundle, name: str, *, namespace: str = "", show_secrets: bool = False) -> str:
    """The data of the config in the bundle, with a newline at its end.

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
        raise NothingToRender(f"the bundle has {len(found)} KubeadmConfigs {name}; say which by --namespace")
    return found[0]


def _stored(bundle: Bundle, config: KubeadmConfig) -> str:
    """The data that is in the config's Secret already, or empty."""
    if not config.status.data_secret_name:
        return ""
    for obj in bundle.objects:
        place = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
        if obj["kind"] == "Secret" and place == (config.metadata.namespace, config.status.data_secret_name):
            value = (obj.get("data") or {}).get("value", "")
            return b64decode(value).decode("utf-8", "replace")
    return ""


def _next(bundle: Bundle, config: KubeadmConfig) -> str:
    """The data that the next pass would write."""
    answer = decide_bundle(_ready_to_pass(bundle, config), f"KubeadmConfig/{config.metadata.namespace}/{config.metadata.name}")
    data: str | None = answer["data"].get(f"Secret/{config.metadata.name}/value")
    if data is None:
        raise NothingToRender(_why(config, answer))
    return data


def _ready_to_pass(bundle: Bundle, config: KubeadmConfig) -> Bundle:
    """The bundle in which the next pass goes as far as it can.

    The first pass over a config only says that it is not paused: that is said already. A workload cluster that the bundle does
    not speak of is reachable: only a token is made there, and none is, here.
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
    return Bundle(tuple(objects), msgspec.structs.replace(bundle.observation, workload_clusters=reached))


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
