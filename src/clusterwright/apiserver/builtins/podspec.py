"""The rules of Pod specs, in kube-apiserver's words."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label, dns_subdomain, label_value, qualified_name
from clusterwright.apiserver.builtins import containers
from clusterwright.apiserver.schema.gotypes import json_fields
from clusterwright.apiserver.status import ErrorType, FieldError, duplicate, forbidden, invalid, not_supported, required

POLICIES: Final = ("Always", "OnFailure", "Never")
_DNS: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_NEEDED: Final = (
    ("hostPath", "path"),
    ("secret", "secretName"),
    ("configMap", "name"),
    ("persistentVolumeClaim", "claimName"),
    ("nfs", "server"),
    ("nfs", "path"),
)
_NUMBERS: Final = "must be between 1 and 2147483647, inclusive"


def pod_spec(spec: Json, path: str, policies: tuple[str, ...] = POLICIES) -> list[FieldError]:
    """Check volumes, containers, placement and the usual enumerations."""
    errors, volumes = _volumes(spec.get("volumes") or (), f"{path}.volumes")
    names: set[str] = set()
    if not spec.get("containers"):
        errors.append(required(f"{path}.containers"))
    for group in ("containers", "initContainers", "ephemeralContainers"):
        for i, item in enumerate(spec.get(group) or ()):
            where = f"{path}.{group}[{i}]"
            errors.extend(containers.container(item, where, names))
            errors.extend(_mounts(item.get("volumeMounts") or (), f"{where}.volumeMounts", volumes))
            if spec.get("hostNetwork"):
                errors.extend(_host_ports(item.get("ports") or (), f"{where}.ports"))
    policy = spec.get("restartPolicy")
    if policy not in policies:
        errors.append(not_supported(f"{path}.restartPolicy", policy, policies) if policy else required(f"{path}.restartPolicy"))
    if spec.get("dnsPolicy") not in _DNS:
        errors.append(not_supported(f"{path}.dnsPolicy", spec.get("dnsPolicy"), _DNS))
    for key, value in (spec.get("nodeSelector") or {}).items():
        errors.extend(invalid(f"{path}.nodeSelector", key, p) for p in qualified_name(key))
        errors.extend(invalid(f"{path}.nodeSelector", value, p) for p in label_value(value))
    for field, rule in (
        ("serviceAccountName", dns_subdomain),
        ("nodeName", dns_subdomain),
        ("hostname", dns_label),
        ("subdomain", dns_label),
    ):
        if text := spec.get(field):
            errors.extend(invalid(f"{path}.{field}", text, p) for p in rule(text))
    errors.extend(containers.identities(spec.get("securityContext") or {}, f"{path}.securityContext"))
    errors.extend(_tolerations(spec.get("tolerations") or (), f"{path}.tolerations"))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        errors.append(invalid(f"{path}.activeDeadlineSeconds", deadline, _NUMBERS))
    return errors


@cache
def _sources() -> tuple[str, ...]:
    first = ("emptyDir", "hostPath")
    return (*first, *(kind for kind in json_fields("core.v1.VolumeSource") if kind not in first))


def _volumes(volumes: Any, path: str) -> tuple[list[FieldError], set[str]]:
    """Return the errors of volumes, and the names of those that can be mounted."""
    errors: list[FieldError] = []
    names: set[str] = set()
    for i, volume in enumerate(volumes):
        name, where = volume.get("name") or "", f"{path}[{i}]"
        given = [kind for kind in _sources() if volume.get(kind) is not None]
        found = [required(f"{where}.{kind}.{field}") for kind, field in _NEEDED if kind in given[:1] and not volume[kind].get(field)]
        found.extend(forbidden(f"{where}.{kind}", "may not specify more than 1 volume type") for kind in given[1:])
        if not given:
            found.append(required(where, "must specify a volume type"))
        if not name:
            found.append(required(f"{where}.name"))
        elif problems := dns_label(name):
            found.extend(invalid(f"{where}.name", name, p) for p in problems)
        elif name in names:
            found.append(duplicate(f"{where}.name", name))
        if not found:
            names.add(name)
        errors.extend(found)
    return errors, names


def _mounts(mounts: Any, path: str, volumes: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    places: set[str] = set()
    for i, mount in enumerate(mounts):
        name, place, where = mount.get("name") or "", mount.get("mountPath") or "", f"{path}[{i}]"
        if not name:
            errors.append(required(f"{where}.name"))
        if name not in volumes:
            errors.append(FieldError(ErrorType.NOT_FOUND, f"{where}.name", name))
        if not place:
            errors.append(required(f"{where}.mountPath"))
        if place in places:
            errors.append(invalid(f"{where}.mountPath", place, "must be unique"))
        places.add(place)
    return errors


def _host_ports(ports: Any, path: str) -> list[FieldError]:
    text = "must match `containerPort` when `hostNetwork` is true"
    return [
        invalid(f"{path}[{i}].hostPort", port["hostPort"], text)
        for i, port in enumerate(ports)
        if port.get("hostPort") and port["hostPort"] != port.get("containerPort")
    ]


def _tolerations(tolerations: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, toleration in enumerate(tolerations):
        where = f"{path}[{i}]"
        key, operator, value, effect = (toleration.get(field) or "" for field in ("key", "operator", "value", "effect"))
        if key:
            errors.extend(invalid(f"{where}.key", key, p) for p in qualified_name(key))
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{where}.operator", operator, text))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            errors.append(invalid(f"{where}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
        if operator == "Exists":
            if value:
                errors.append(invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'"))
        elif operator in ("", "Equal"):
            if problems := label_value(value):
                errors.append(invalid(f"{where}.operator", value, ";".join(problems)))
        else:
            errors.append(not_supported(f"{where}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in _EFFECTS:
            errors.append(not_supported(f"{where}.effect", effect, _EFFECTS))
    return errors
