"""Write the objects as YAML, as a kustomize base, or as a Helm chart: files by name. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from clusterwright.api.copying import replace
from clusterwright.api.meta import Json
from clusterwright.api.yamlwriter import dump, dump_all
from clusterwright.install.manifests import RESOURCES, Settings

Make = Callable[[Settings], Sequence[Json]]


def _group(obj: Json) -> str:
    kind = obj["kind"]
    if kind == "CustomResourceDefinition":
        return "crds"
    if kind == "Namespace":
        return "namespace"
    if "Role" in kind or kind == "ServiceAccount":
        return "rbac"
    return "webhooks" if "Webhook" in kind else "manager"


def kustomize(objects: Sequence[Json]) -> dict[str, str]:
    """Return a base: one file per kind of object, and the kustomization that lists them in order."""
    groups: dict[str, list[Json]] = {}
    for obj in objects:
        groups.setdefault(_group(obj), []).append(obj)
    files = {f"{name}.yaml": dump_all(members) for name, members in groups.items()}
    base: Json = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": list(files)}
    return {"kustomization.yaml": dump_all([base]), **files}


_REPLICAS: Final = "{{ int .Values.replicas }}"
_NAMESPACE: Final = "{{ .Release.Namespace }}"
_IMAGE: Final = "{{ .Values.image }}"
_RESOURCES: Final = "{{ toJson .Values.resources }}"
_ARGUMENTS: Final = "{{ range .Values.arguments }}{{ . }}{{ end }}"


def helm(make: Make, settings: Settings, version: str) -> dict[str, str]:
    """Return a chart. Replicas, image, resources and further flags are values; the namespace is the release's."""
    filled = replace(settings, namespace=_NAMESPACE, image=_IMAGE, replicas=_REPLICAS, resources=_RESOURCES, arguments=(_ARGUMENTS,))
    files: dict[str, str] = {}
    groups: dict[str, list[Json]] = {}
    for obj in make(filled):
        group = _group(obj)
        if group != "namespace":  # Helm's own business: --create-namespace
            groups.setdefault(f"crds/{obj['metadata']['name']}" if group == "crds" else group, []).append(obj)
    for name, members in groups.items():
        files[f"templates/{name}.yaml"] = _template(dump_all(members))
    values = {
        "image": settings.image,
        "replicas": settings.replicas,
        "resources": settings.resources if settings.resources is not None else RESOURCES,
        "arguments": list(settings.arguments),
    }
    chart = {
        "apiVersion": "v2",
        "name": "clusterwright",
        "description": "Cluster API in Python: controllers that create, scale, upgrade, repair and delete Kubernetes clusters",
        "type": "application",
        "version": version,
        "appVersion": version,
    }
    return {"Chart.yaml": dump(chart), "values.yaml": dump(values), **files}


def _template(text: str) -> str:
    """Return YAML with placeholders as a template: existing braces are kept, values that are not text lose their quotes."""
    ours = (_REPLICAS, _NAMESPACE, _IMAGE, _RESOURCES, _ARGUMENTS)
    marks = {placeholder: f"\x00{n}\x00" for n, placeholder in enumerate(ours)}
    for placeholder, mark in marks.items():
        text = text.replace(placeholder, mark)
    text = re.sub(r"\{\{|\}\}", lambda braces: f'{{{{ "{braces[0]}" }}}}', text)
    for unquoted in (_REPLICAS, _RESOURCES):
        text = text.replace(f"'{marks[unquoted]}'", unquoted)
    # a list with one placeholder becomes as many items as there are values
    text = re.sub(
        rf"^( *)- '{re.escape(marks[_ARGUMENTS])}'\n",
        r"\1{{- range .Values.arguments }}\n\1- {{ quote . }}\n\1{{- end }}\n",
        text,
        flags=re.MULTILINE,
    )
    for placeholder, mark in marks.items():
        text = text.replace(mark, placeholder)
    return text
