"""The rules of the built-in kinds, in kube-apiserver's words."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_subdomain, qualified_name
from clusterwright.apiserver.builtins.amounts import AT_LEAST_ZERO
from clusterwright.apiserver.status import (
    FieldError,
    Verbatim,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)

IMMUTABLE: Final = "field is immutable"
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_KEY_TEXT: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_MAXIMUM_DATA: Final = 1024 * 1024


def internal(value: Json, fields: tuple[str, ...], empty: Any = "") -> Verbatim:
    """Return a struct as kube-apiserver's errors show it: in its internal form."""
    names = {"apiGroup": "APIGroup"}
    shown = {names.get(f, f"{f[:1].upper()}{f[1:]}"): value.get(f, empty) for f in fields}
    return Verbatim(json.dumps(shown, separators=(",", ":"), ensure_ascii=False))


def immutable(new: Json, old: Json, field: str, path: str = "") -> list[FieldError]:
    """Return the error for a changed immutable field."""
    if new.get(field) != old.get(field):
        return [invalid(path or field, new.get(field), IMMUTABLE)]
    return []


def config_key(text: str) -> list[str]:
    """Return the errors of a key in a Secret or ConfigMap."""
    problems = [] if len(text) <= 253 else ["must be no more than 253 characters"]
    if not _KEY.fullmatch(text):
        problems.append(_KEY_TEXT)
    elif text == ".":
        problems.append("must not be '.'")
    elif text == "..":
        problems.append("must not be '..'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def _keys(data: Any, path: str) -> Iterable[FieldError]:
    for key in data or ():
        for problem in config_key(key):
            yield invalid(f"{path}[{key}]", key, problem)


def _immutable_data(new: Json, old: Json, fields: tuple[str, ...]) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    text = "field is immutable when `immutable` is set"
    errors = [] if new.get("immutable") else [forbidden("immutable", text)]
    errors.extend(forbidden(f, text) for f in fields if (new.get(f) or {}) != (old.get(f) or {}))
    return errors


def config_map(obj: Json) -> list[FieldError]:
    """Check keys, overlap and size."""
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    errors: list[FieldError] = []
    for key in data:
        errors.extend(invalid(f"data[{key}]", key, p) for p in config_key(key))
        if key in binary:
            errors.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    errors.extend(_keys(binary, "binaryData"))
    size = sum(len(k) + len(v.encode()) for k, v in data.items()) + sum(len(k) + len(v) * 3 // 4 for k, v in binary.items())
    if size > _MAXIMUM_DATA:
        errors.append(too_long("[]", _MAXIMUM_DATA))
    return errors


def config_map_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that an immutable one does not change."""
    return _immutable_data(obj, old, ("data", "binaryData"))


_SECRET_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def secret(obj: Json) -> list[FieldError]:
    """Check keys, size, and the fields that the type requires."""
    data = obj.get("data") or {}
    errors = list(_keys(data, "data"))
    if sum(len(v) * 3 // 4 for v in data.values()) > _MAXIMUM_DATA:
        errors.append(too_long("data", _MAXIMUM_DATA))
    kind = str(obj.get("type"))
    if kind == "kubernetes.io/service-account-token":
        annotations = obj["metadata"].get("annotations") or {}
        if not annotations.get("kubernetes.io/service-account.name"):
            errors.append(required("metadata.annotations[kubernetes.io/service-account.name]"))
    elif kind == "kubernetes.io/basic-auth":
        if not {"username", "password"} & data.keys():
            errors.extend((required("data[username]"), required("data[password]")))
    elif kind in _SECRET_KEYS:
        for key in _SECRET_KEYS[kind]:
            empty_is_missing = kind == "kubernetes.io/ssh-auth"
            if key not in data or (empty_is_missing and not data[key]):
                errors.append(required(f"data[{key}]"))
            elif key.startswith(".docker"):
                try:
                    json.loads(base64.b64decode(data[key]))
                except ValueError:
                    found = base64.b64decode(data[key]).decode("latin-1").strip()[:1]
                    text = f"invalid character '{found}' looking for beginning of value" if found else "unexpected end of JSON input"
                    errors.append(invalid(f"data[{key}]", "<secret contents redacted>", text))
    return errors


def secret_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that the type does not change, nor an immutable one."""
    return immutable(obj, old, "type") + _immutable_data(obj, old, ("data",))


def secret_warnings(obj: Json, old: Json | None) -> list[str]:
    """Return warnings about invalid certificates."""
    if obj.get("type") != "kubernetes.io/tls":
        return []
    data = obj.get("data") or {}
    if old is not None and (old.get("data") or {}) == data:
        return []
    for key, word in (("tls.crt", "certificate"), ("tls.key", "key")):
        if b"-----BEGIN " not in base64.b64decode(data.get(key) or ""):
            return [f"tls: failed to find any PEM data in {word} input"]
    return []


# ---------------------------------------------------------------- leases, events


def lease(obj: Json) -> list[FieldError]:
    """Check that durations are positive and transitions are not negative."""
    spec = obj.get("spec") or {}
    errors = []
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        errors.append(invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    if transitions is not None and transitions < 0:
        errors.append(invalid("spec.leaseTransitions", transitions, AT_LEAST_ZERO))
    return errors


def event(obj: Json, *, modern: bool) -> list[FieldError]:
    """Check that the namespace is the object's, that an event with a time names actor and action, and that events.k8s.io sets a time.

    `obj` is in the core form.
    """
    errors: list[FieldError] = []
    namespace, is_timed = obj["metadata"].get("namespace") or "", bool(obj.get("eventTime"))
    involved = (obj.get("involvedObject") or {}).get("namespace") or ""
    allowed = {"default", "kube-system"} if is_timed else {"", "default"}
    if (namespace not in allowed) if not involved else (involved != namespace and not is_timed):
        errors.append(invalid("involvedObject.namespace", involved, "does not match event.namespace"))
    if is_timed:
        errors.extend(_reported(obj, "reportingController" if modern else "reportingComponent"))
    if not modern:
        return errors
    if not is_timed:
        errors.append(required("eventTime"))
    if obj.get("type") not in ("Normal", "Warning"):
        errors.append(invalid("type", "", f"has invalid value: {obj.get('type') or ''}"))
    return errors


def _reported(obj: Json, reporter: str) -> Iterator[FieldError]:
    component = obj.get("reportingComponent") or ""
    if not component:
        yield required(reporter)
    yield from (invalid(reporter, component, p) for p in qualified_name(component))
    for field in ("reportingInstance", "action", "reason"):
        if not (value := obj.get(field) or ""):
            yield required(field)
        if len(value) > 128:
            yield invalid(field, "", "can have at most 128 characters")
    if len(obj.get("message") or "") > 1024:
        yield invalid("message", "", "can have at most 1024 characters")


_EVENT_FIXED: Final = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "reportingComponent",
    "reportingInstance",
    "type",
    "action",
    "related",
    "eventTime",
)


def event_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that only the series of an event of events.k8s.io changes."""
    changed = [f for f in _EVENT_FIXED if (obj.get(f) or None) != (old.get(f) or None)]
    return [invalid(f, obj.get(f), IMMUTABLE) for f in changed]


# ---------------------------------------------------------------- RBAC


def role(obj: Json, *, cluster: bool = False) -> list[FieldError]:
    """Check that rules have verbs and resources."""
    errors = []
    for i, rule in enumerate(obj.get("rules") or ()):
        path = f"rules[{i}]"
        if not rule.get("verbs"):
            errors.append(required(f"{path}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            if not cluster:
                errors.append(invalid(f"{path}.nonResourceURLs", urls, "namespaced rules cannot apply to non-resource URLs"))
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                errors.append(
                    invalid(f"{path}.nonResourceURLs", urls, "rules cannot apply to both regular resources and non-resource URLs")
                )
            continue
        if not rule.get("apiGroups"):
            errors.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
        if not rule.get("resources"):
            errors.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def role_binding(obj: Json, *, cluster: bool = False) -> list[FieldError]:
    """Check the role, and that subjects have names."""
    errors = []
    reference = obj.get("roleRef") or {}
    if reference.get("apiGroup") != "rbac.authorization.k8s.io":
        errors.append(not_supported("roleRef.apiGroup", reference.get("apiGroup") or "", ("rbac.authorization.k8s.io",)))
    kinds = ("ClusterRole",) if cluster else ("Role", "ClusterRole")
    if reference.get("kind") not in kinds:
        errors.append(not_supported("roleRef.kind", reference.get("kind") or "", kinds))
    if not reference.get("name"):
        errors.append(required("roleRef.name"))
    for i, subject in enumerate(obj.get("subjects") or ()):
        path = f"subjects[{i}]"
        if not subject.get("name"):
            errors.append(required(f"{path}.name"))
        kind, name, group = (subject.get(field) or "" for field in ("kind", "name", "apiGroup"))
        if kind not in ("ServiceAccount", "User", "Group"):
            errors.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
            continue
        wanted = "" if kind == "ServiceAccount" else "rbac.authorization.k8s.io"
        if group != wanted:
            errors.append(not_supported(f"{path}.apiGroup", group, (wanted,)))
        if kind == "ServiceAccount":
            errors.extend(invalid(f"{path}.name", name, p) for p in (dns_subdomain(name) if name else ()))
            if cluster and not subject.get("namespace"):
                errors.append(required(f"{path}.namespace"))
    return errors


def role_binding_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that the role does not change."""
    if obj.get("roleRef") != old.get("roleRef"):
        return [invalid("roleRef", internal(obj.get("roleRef") or {}, ("apiGroup", "kind", "name")), "cannot change roleRef")]
    return []


def webhook_url(url: str, field: str) -> list[FieldError]:
    """Check that a webhook URL uses https, and consists only of host and path."""
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError:
        return [required(field, f"url must be a valid URL{form}")]
    if parts.scheme != "https":
        return [invalid(field, parts.scheme, f"'https' is the only allowed URL scheme{form}")]
    errors = [] if parts.netloc else [invalid(field, parts.netloc, f"host must be specified{form}")]
    if parts.username is not None:
        errors.append(invalid(field, parts.username, f"user information is not permitted in the URL{form}"))
    if parts.fragment:
        errors.append(invalid(field, parts.fragment, f"fragments are not permitted in the URL{form}"))
    if parts.query:
        errors.append(invalid(field, parts.query, f"query parameters are not permitted in the URL{form}"))
    return errors


def webhook_configuration(obj: Json) -> list[FieldError]:
    """Return the errors of a webhook configuration."""
    errors = []
    names: set[str] = set()
    for i, hook in enumerate(obj.get("webhooks") or ()):
        path = f"webhooks[{i}]"
        name = hook.get("name") or ""
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
        if name.count(".") < 2:
            errors.append(invalid(f"{path}.name", name, "should be a domain with at least three segments separated by dots"))
        if not hook.get("admissionReviewVersions"):
            errors.append(required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1"))
        if hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            if not hook.get("sideEffects"):
                errors.append(required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun"))
            else:
                errors.append(not_supported(f"{path}.sideEffects", hook["sideEffects"], ("None", "NoneOnDryRun")))
        if hook.get("failurePolicy") not in ("Fail", "Ignore"):
            errors.append(not_supported(f"{path}.failurePolicy", hook.get("failurePolicy"), ("Fail", "Ignore")))
        if not 1 <= (hook.get("timeoutSeconds") or 0) <= 30:
            errors.append(
                invalid(f"{path}.timeoutSeconds", hook.get("timeoutSeconds"), "the timeout value must be between 1 and 30 seconds")
            )
        client = hook.get("clientConfig") or {}
        if bool(client.get("url")) == bool(client.get("service")):
            errors.append(required(f"{path}.clientConfig", "exactly one of url or service is required"))
        if client.get("url"):
            errors.extend(webhook_url(str(client["url"]), f"{path}.clientConfig.url"))
    return errors


def volume_attachment(obj: Json) -> list[FieldError]:
    """Check attacher, source and node."""
    spec = obj.get("spec") or {}
    errors = [required(f"spec.{f}") for f in ("attacher", "nodeName") if not spec.get(f)]
    source = spec.get("source") or {}
    if not source.get("persistentVolumeName") and not source.get("inlineVolumeSpec"):
        errors.append(required("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"))
    return errors


def volume_attachment_update(obj: Json, old: Json) -> list[FieldError]:
    """Check that the spec does not change."""
    return [invalid("spec", None, IMMUTABLE)] if obj.get("spec") != old.get("spec") else []


def namespace_status(obj: Json, old: Json) -> list[FieldError]:
    """Check that the phase matches the deletion timestamp."""
    phase = (obj.get("status") or {}).get("phase")
    deleting = bool(obj["metadata"].get("deletionTimestamp"))
    if deleting and phase != "Terminating":
        return [invalid("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")]
    if not deleting and phase != "Active":
        return [invalid("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")]
    return []
