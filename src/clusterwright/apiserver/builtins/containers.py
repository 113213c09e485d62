"""The rules of containers, and the warnings about Pods, in kube-apiserver's words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from clusterwright.api.meta import Json
from clusterwright.api.names import dns_label, qualified_name
from clusterwright.apiserver.builtins.amounts import AT_LEAST_ZERO, PORT_RANGE
from clusterwright.apiserver.status import FieldError, duplicate, forbidden, invalid, not_supported, required
from clusterwright.golang.quantities import parse_quantity

_PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_TERMS: Final = (
    ("requiredDuringSchedulingIgnoredDuringExecution", ""),
    ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"),
)
_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")
_ENDS: Final = ("File", "FallbackToLogsOnError")
_VARIABLE: Final = "[ -<>-~]+"
_VARIABLE_TEXT: Final = "a valid environment variable name must consist only of printable ASCII characters other than '='"
_COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")


def container(container: Json, path: str, names: set[str]) -> list[FieldError]:
    """Return the errors of a container; `names` are those of the containers before it."""
    errors: list[FieldError] = []
    name = container.get("name") or ""
    if not name:
        errors.append(required(f"{path}.name"))
    else:
        errors.extend(invalid(f"{path}.name", name, p) for p in dns_label(name))
        if name in names:
            errors.append(duplicate(f"{path}.name", name))
        names.add(name)
    image = container.get("image") or ""
    if not image:
        errors.append(required(f"{path}.image"))
    elif image != image.strip():
        errors.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    errors.extend(_ports(container.get("ports") or (), f"{path}.ports"))
    errors.extend(_variables(container.get("env") or (), f"{path}.env"))
    errors.extend(_variable_sources(container.get("envFrom") or (), f"{path}.envFrom"))
    policy = container.get("imagePullPolicy")
    if policy and policy not in _PULL_POLICIES:
        errors.append(not_supported(f"{path}.imagePullPolicy", policy, _PULL_POLICIES))
    errors.extend(_resources(container.get("resources") or {}, f"{path}.resources"))
    ending = container.get("terminationMessagePolicy")
    if ending and ending not in _ENDS:
        errors.append(not_supported(f"{path}.terminationMessagePolicy", ending, _ENDS))
    errors.extend(_life(container, path))
    errors.extend(identities(container.get("securityContext") or {}, f"{path}.securityContext"))
    return errors


_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def _life(container: Json, path: str) -> Iterator[FieldError]:
    """Check probes and lifecycle hooks, which only containers that keep running may have."""
    if "initContainers[" in path and container.get("restartPolicy") != "Always":
        text = "may not be set for init containers without restartPolicy=Always"
        yield from (forbidden(f"{path}.{kind}", text) for kind in ("lifecycle", *_PROBES) if container.get(kind) is not None)
        return
    for moment in ("postStart", "preStop"):
        if (handler := (container.get("lifecycle") or {}).get(moment)) is not None:
            yield from _handler(handler, f"{path}.lifecycle.{moment}")
    for kind in _PROBES:
        if (probe := container.get(kind)) is not None:
            yield from _probe(probe, f"{path}.{kind}", once=kind != "readinessProbe")


def identities(context: Json, path: str) -> list[FieldError]:
    """Check that users and groups of a security context are not negative."""
    found = [(field, context[field]) for field in ("runAsUser", "runAsGroup", "fsGroup") if context.get(field) is not None]
    found.extend((f"supplementalGroups[{i}]", group) for i, group in enumerate(context.get("supplementalGroups") or ()))
    text = "must be between 0 and 2147483647, inclusive"
    return [invalid(f"{path}.{field}", number, text) for field, number in found if not 0 <= number <= 2**31 - 1]


def _ports(ports: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for i, port in enumerate(ports):
        where = f"{path}[{i}]"
        if name := port.get("name"):
            if problems := port_name(name):
                errors.extend(invalid(f"{where}.name", name, p) for p in problems)
            elif name in names:
                errors.append(duplicate(f"{where}.name", name))
            names.add(name)
        number = port.get("containerPort") or 0
        if not number:
            errors.append(required(f"{where}.containerPort"))
        elif not 1 <= number <= 65535:
            errors.append(invalid(f"{where}.containerPort", number, PORT_RANGE))
        on_host = port.get("hostPort") or 0
        if on_host and not 1 <= on_host <= 65535:
            errors.append(invalid(f"{where}.hostPort", on_host, PORT_RANGE))
        if port.get("protocol") not in _PROTOCOLS:
            errors.append(not_supported(f"{where}.protocol", port.get("protocol"), _PROTOCOLS))
    return errors


def port_name(name: str) -> list[str]:
    """Return the errors in the name of a port."""
    problems = []
    if len(name.encode()) > 15:
        problems.append("must be no more than 15 characters")
    if not re.fullmatch("[-a-z0-9]+", name):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        problems.append("must contain at least one letter (a-z)")
    if "--" in name:
        problems.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def _variables(variables: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, variable in enumerate(variables):
        name = variable.get("name") or ""
        if not name:
            errors.append(required(f"{path}[{i}].name"))
        elif not re.fullmatch(_VARIABLE, name):
            errors.append(invalid(f"{path}[{i}].name", name, _VARIABLE_TEXT))
        if (source := variable.get("valueFrom")) is not None:
            given = [kind for kind in _SOURCES if source.get(kind) is not None]
            where = f"{path}[{i}].valueFrom"
            if not given:
                sources = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
                errors.append(invalid(where, "", f"must specify one of: {sources}"))
            elif variable.get("value"):
                errors.append(invalid(where, "", "may not be specified when `value` is not empty"))
            elif len(given) > 1:
                errors.append(invalid(where, "", "may not have more than one field specified at a time"))
    return errors


def _variable_sources(sources: Any, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for i, source in enumerate(sources):
        prefix = source.get("prefix") or ""
        if prefix and not re.fullmatch(_VARIABLE, prefix):
            errors.append(invalid(f"{path}[{i}].prefix", prefix, _VARIABLE_TEXT))
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        errors.extend(required(f"{path}[{i}].{kind}.name") for kind in given if not source[kind].get("name"))
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _resources(resources: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for group, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            where = f"{path}.{group}[{name}]"
            problems = qualified_name(name)
            errors.extend(invalid(where, name, p) for p in problems)
            extended = "/" in name and "kubernetes.io/" not in name
            if "/" not in name and name not in _RESOURCES and not name.startswith("hugepages-"):
                if not problems:
                    errors.append(invalid(where, name, "must be a standard resource type or fully qualified"))
                errors.append(invalid(where, name, "must be a standard resource for containers"))
            size = parse_quantity(amount).amount
            if size < 0:
                errors.append(invalid(where, amount, AT_LEAST_ZERO))
            if extended and size != size.to_integral_value():
                errors.append(invalid(where, amount, "must be an integer"))
            if group == "limits":
                continue
            limit = limits.get(name)
            if limit is None:
                if extended:
                    errors.append(required(f"{path}.limits", "Limit must be set for non overcommitable resources"))
            elif extended and size != parse_quantity(limit).amount:
                errors.append(invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}"))
            elif size > parse_quantity(limit).amount:
                errors.append(invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}"))
    return errors


def _probe(probe: Json, path: str, *, once: bool) -> list[FieldError]:
    errors = _handler(probe, path)
    for field in _COUNTS:
        if (probe.get(field) or 0) < 0:
            errors.append(invalid(f"{path}.{field}", probe[field], AT_LEAST_ZERO))
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if once and probe.get("successThreshold") != 1:
        errors.append(invalid(f"{path}.successThreshold", probe.get("successThreshold") or 0, "must be 1"))
    if not once and grace is not None:
        errors.append(invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes"))
    return errors


def _handler(handler: Json, path: str) -> list[FieldError]:
    given = [kind for kind in _HANDLERS if handler.get(kind) is not None]
    if not given:
        return [required(path, "must specify a handler type")]
    first = given[0]
    action, where = handler[first], f"{path}.{first}"
    errors: list[FieldError] = []
    if first == "exec" and not action.get("command"):
        errors.append(required(f"{where}.command"))
    if first == "httpGet" and not action.get("path"):
        errors.append(required(f"{where}.path"))
    if first in ("httpGet", "tcpSocket", "grpc"):
        port = action.get("port", 0)
        problems = port_name(port) if type(port) is str else () if 1 <= port <= 65535 else (PORT_RANGE,)
        errors.extend(invalid(f"{where}.port", port, p) for p in problems)
    if first == "httpGet" and action.get("scheme") not in ("HTTP", "HTTPS"):
        errors.append(not_supported(f"{where}.scheme", action.get("scheme"), ("HTTP", "HTTPS")))
    errors.extend(forbidden(f"{path}.{kind}", "may not specify more than 1 handler type") for kind in given[1:])
    return errors


# ---------------------------------------------------------------- warnings


def pod_warnings(obj: Json, old: Json | None) -> list[str]:
    """Return the warnings about a new Pod; changes of Pods have none."""
    if old is not None:
        return []
    return [*_name_warnings(obj, "the Pod's hostname"), *_template_warnings(obj, "")]


def workload_warnings(obj: Json, old: Json | None) -> list[str]:
    """Return the warnings about a kind with a Pod template when its spec changes."""
    if old is not None and obj.get("spec") == old.get("spec"):
        return []
    template = (obj.get("spec") or {}).get("template") or {}
    named = old is None and obj.get("kind") in ("Deployment", "ReplicaSet")
    return [*(_name_warnings(obj, "Pod names and hostnames") if named else ()), *_template_warnings(template, "spec.template.")]


def _name_warnings(obj: Json, use: str) -> list[str]:
    problems = dns_label(obj["metadata"].get("name") or "")
    text = f"metadata.name: this is used in {use}, which can result in surprising behavior; a DNS label is recommended"
    return [f"{text}: [{' '.join(problems)}]"] if problems else []


def _containers(spec: Json, path: str) -> Iterator[tuple[Json, str]]:
    for group in ("initContainers", "containers", "ephemeralContainers"):
        for i, item in enumerate(spec.get(group) or ()):
            yield item, f"{path}spec.{group}[{i}]"


def _template_warnings(template: Json, path: str) -> list[str]:
    spec = template.get("spec") or {}
    warnings: list[str] = []
    for i, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            where = f"{path}spec.topologySpreadConstraints[{i}].labelSelector"
            warnings.append(f"{where}: a null labelSelector results in matching no pod")
    for field, key, word in (("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")):
        seen: set[str] = set()
        for i, item in enumerate(spec.get(field) or ()):
            value = item.get(key) or ""
            if value in seen:
                warnings.append(f'{path}spec.{field}[{i}].{key}: duplicate {word} "{value}"')
            seen.add(value)
    for i, item in enumerate(spec.get("imagePullSecrets") or ()):
        if not item.get("name"):
            warnings.append(f'{path}spec.imagePullSecrets[{i}].name: invalid empty name ""')
    for item, where in _containers(spec, path):
        warnings.extend(_fractions(item.get("resources") or {}, f"{where}.resources"))
        warnings.extend(_hidden_variables(item.get("env") or (), f"{where}.env"))
    warnings.extend(_port_warnings(spec, path))
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        warnings.append(f"{path}spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1")
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = (spec.get("affinity") or {}).get(kind) or {}
        for field, inner in _TERMS:
            for i, term in enumerate(terms.get(field) or ()):
                if ((term.get(inner) or {}) if inner else term).get("labelSelector") is None:
                    where = f"{path}spec.affinity.{kind}.{field}[{i}]{'.' + inner if inner else ''}.labelSelector"
                    warnings.append(f"{where}: a null labelSelector results in matching no pod")
    return warnings


def _fractions(resources: Json, path: str) -> Iterator[str]:
    for name in ("memory", "ephemeral-storage"):
        for group in ("limits", "requests"):
            amount = (resources.get(group) or {}).get(name)
            size = None if amount is None else parse_quantity(amount).amount
            if size is not None and size != size.to_integral_value():
                yield f'{path}.{group}[{name}]: fractional byte value "{amount}" is invalid, must be an integer'


def _hidden_variables(variables: Any, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for i, variable in enumerate(variables):
        name, value = variable.get("name") or "", variable.get("value") or ""
        reference = f"$({name})"
        if name in seen and (variable.get("valueFrom") is not None or value == reference or reference not in value):
            yield f'{path}[{i}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _port_warnings(spec: Json, path: str) -> list[str]:
    warnings: list[str] = []
    used: dict[tuple[Any, Any], list[tuple[str, Json]]] = {}
    ports = [(port, f"{where}.ports[{i}]") for item, where in _containers(spec, path) for i, port in enumerate(item.get("ports") or ())]
    for port, where in ports:
        others = used.setdefault((port.get("containerPort"), port.get("protocol")), [])
        address, number = port.get("hostIP") or "", port.get("hostPort") or 0
        for there, other in others:
            that_address, that_number = other.get("hostIP") or "", other.get("hostPort") or 0
            if (address, number) == (that_address, that_number):
                warnings.append(f"{where}: duplicate port definition with {there}")
            elif not number or not that_number:
                warnings.append(f"{where}: overlapping port definition with {there}")
            elif number == that_number and bool(address) != bool(that_address):
                warnings.append(f"{where}: dangerously ambiguous port definition with {there}")
        others.append((where, port))
    names: dict[str, str] = {}
    for port, where in ports:
        name = port.get("name") or ""
        if name in names:
            there = names[name]
            text = f'duplicate port name "{name}" with {there}, services and probes that select ports by name will use {there}'
            warnings.append(f"{where}: {text}")
        elif name:
            names[name] = where
    return warnings
