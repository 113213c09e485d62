"""Read the program of a provider from its Deployment: arguments, environment, volumes and probes. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json

_REFERENCE: Final = re.compile(r"\$\$|\$\(([A-Za-z_.-][\w.-]*)\)")
LONGEST_GRACE: Final = 20.0
"""The most seconds that a process gets to end: a plane that stops waits for all of them."""


class BadRelease(ValueError):
    """The release cannot be installed; the text says why and what to do."""


class Source(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The value of an environment variable: a text, a field of the Pod, or a key of a Secret or ConfigMap."""

    value: str = ""
    field: str = ""
    kind: str = ""
    """`Secret` or `ConfigMap`; `name` and `key` say which value. Without `key`: all values, with `value` as the prefix of their names."""
    name: str = ""
    key: str = ""
    optional: bool = False


class Mount(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A folder that the program expects at `path`; what is in it."""

    path: str
    kind: str
    """`Secret`, `ConfigMap`, `Certificate` for a serving certificate, or nothing for an empty folder."""
    name: str = ""
    items: dict[str, str] = {}
    """The files of the given keys; empty: every key is a file of its own name."""
    sub_path: str = ""
    """The one file of the volume that is mounted at `path`."""
    optional: bool = False


class Probe(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An HTTP or TCP check of the program. `path` empty: only the connection is checked."""

    port: int
    path: str = ""
    is_tls: bool = False
    initial_delay: float = 0.0
    period: float = 10.0
    failures: int = 3


class Program(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The program of a provider, as its Deployment describes it."""

    container: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, Source] = {}
    env_from: tuple[Source, ...] = ()
    mounts: tuple[Mount, ...] = ()
    account: str = "default"
    liveness: Probe | None = None
    readiness: Probe | None = None
    grace: float = 10.0
    image: str = ""
    missing: tuple[str, ...] = ()
    """Parts of the Deployment that a process cannot have, for people."""


def program(deployment: Json, container: str = "") -> Program:
    """Return the program of a Deployment's container; raises BadRelease."""
    spec = _map(_map(_map(deployment.get("spec")).get("template")).get("spec"))
    chosen = _container(deployment, _maps(spec.get("containers")), container)
    volumes = {str(volume.get("name")): volume for volume in _maps(spec.get("volumes"))}
    mounts, missing = _mounts(chosen, volumes)
    others = [str(one.get("name")) for one in _maps(spec.get("containers")) if one is not chosen]
    missing += [f"container {name} is not started" for name in others]
    missing += [f"init container {one.get('name')} is not started" for one in _maps(spec.get("initContainers"))]
    ports = {str(port.get("name")): int(port.get("containerPort") or 0) for port in _maps(chosen.get("ports"))}
    return Program(
        container=str(chosen.get("name")),
        # the image's entrypoint, or the first word of the command, is the binary
        args=(*_texts(chosen.get("command"))[1:], *_texts(chosen.get("args"))),
        env={str(one.get("name")): _source(one) for one in _maps(chosen.get("env"))},
        env_from=tuple(_bulk(one) for one in _maps(chosen.get("envFrom"))),
        mounts=tuple(mounts),
        account=str(spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"),
        liveness=_probe(chosen.get("livenessProbe"), ports),
        readiness=_probe(chosen.get("readinessProbe"), ports),
        grace=min(float(spec.get("terminationGracePeriodSeconds") or 10.0), LONGEST_GRACE),
        image=str(chosen.get("image") or ""),
        missing=tuple(missing),
    )


def _container(deployment: Json, containers: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any]:
    """Return the container that is named, the only one, or the one that kubectl or kubebuilder's scaffold treats as the main one."""
    if not containers:
        raise BadRelease(f"Deployment {deployment['metadata'].get('name')} has no containers")
    template = _map(_map(deployment.get("spec")).get("template"))
    annotated = _map(_map(template.get("metadata")).get("annotations")).get("kubectl.kubernetes.io/default-container")
    wanted = [name] if name else [annotated, "manager"]
    for candidate in wanted:
        for one in containers:
            if candidate and one.get("name") == candidate:
                return one
    if name or len(containers) > 1:
        known = ", ".join(str(one.get("name")) for one in containers)
        raise BadRelease(f"Deployment {deployment['metadata'].get('name')} has the containers {known}: choose one with --container")
    return containers[0]


def _source(variable: Mapping[str, Any]) -> Source:
    origin = _map(variable.get("valueFrom"))
    if "fieldRef" in origin:
        return Source(field=str(_map(origin["fieldRef"]).get("fieldPath") or ""))
    for field, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        if field in origin:
            one = _map(origin[field])
            return Source(kind=kind, name=str(one.get("name")), key=str(one.get("key")), optional=one.get("optional") is True)
    return Source(value=str(variable.get("value") or ""))


def _bulk(entry: Mapping[str, Any]) -> Source:
    kind = "Secret" if "secretRef" in entry else "ConfigMap"
    one = _map(entry.get("secretRef") or entry.get("configMapRef"))
    return Source(kind=kind, name=str(one.get("name")), value=str(entry.get("prefix") or ""), optional=one.get("optional") is True)


def _mounts(container: Mapping[str, Any], volumes: Mapping[str, Mapping[str, Any]]) -> tuple[list[Mount], list[str]]:
    """Return the folders of a container, and those that a process cannot have."""
    made: list[Mount] = []
    missing: list[str] = []
    for mount in _maps(container.get("volumeMounts")):
        path, sub = str(mount.get("mountPath") or "").rstrip("/"), str(mount.get("subPath") or "")
        volume = _map(volumes.get(str(mount.get("name"))))
        for field, kind, named in (("secret", "Secret", "secretName"), ("configMap", "ConfigMap", "name")):
            if field in volume:
                one = _map(volume[field])
                items = {str(item.get("key")): str(item.get("path")) for item in _maps(one.get("items"))}
                optional = one.get("optional") is True
                made.append(Mount(path=path, kind=kind, name=str(one.get(named)), items=items, sub_path=sub, optional=optional))
                break
        else:
            if "emptyDir" in volume:
                made.append(Mount(path=path, kind=""))
            else:
                kinds = ", ".join(key for key in volume if key != "name") or "no source"
                missing.append(f"volume {mount.get('name')} ({kinds}) is not there at {path}")
    return made, missing


def _probe(probe: Any, ports: Mapping[str, int]) -> Probe | None:
    given = _map(probe)
    target = _map(given.get("httpGet") or given.get("tcpSocket"))
    port = target.get("port")
    number = port if isinstance(port, int) else ports.get(str(port), 0)
    if not number:
        return None
    return Probe(
        port=number,
        path=str(target.get("path") or "/") if "httpGet" in given else "",
        is_tls=target.get("scheme") == "HTTPS",
        initial_delay=float(given.get("initialDelaySeconds") or 0),
        period=max(float(given.get("periodSeconds") or 10), 1.0),
        failures=max(int(given.get("failureThreshold") or 3), 1),
    )


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return a text with `$(NAME)` replaced as Kubernetes does: unknown names stay, `$$` is a dollar sign."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else values.get(found[1], found[0])

    return _REFERENCE.sub(value, text)


def relocated(text: str, places: Mapping[str, str]) -> str:
    """Return a text in which paths below a mount are paths of this machine; longer mounts are looked for first."""
    if not places:
        return text
    choices = "|".join(re.escape(path) for path in sorted(places, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])({choices})(?=/|$|[\s,;:'\"])", lambda found: places[found[1]], text)


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(one) for one in value) if isinstance(value, list) else ()
