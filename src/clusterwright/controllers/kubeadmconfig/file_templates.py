"""Render files whose content is a Go template with the version of the control plane, which may be ahead of the node's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusterwright import gotemplate
from clusterwright.api.contract import CONTRACTS, MalformedField
from clusterwright.api.copying import replace
from clusterwright.api.machine_setup import File
from clusterwright.controllers.external import ContractUnknown, get_external
from clusterwright.controllers.kit.contract import field_of
from clusterwright.controllers.kit.lookup import Found
from clusterwright.controllers.kubeadmconfig.material import MaterialFailed, resolve_files
from clusterwright.controllers.kubeadmconfig.snapshot import ClusterFacts
from clusterwright.golang.quoting import quote
from clusterwright.gotemplate import Budget, Template, TemplateError
from clusterwright.kubeadm.presence import is_defined
from clusterwright.kubeadm.versions import parse_version
from clusterwright.runtime.client import Client
from clusterwright.runtime.errors import ApiError

TEMPLATE: Final = "Template"
MOST_BYTES: Final = 1 << 20
"""The longest file that a template may produce."""
MOST_STEPS: Final = 120_000
"""The highest cost of all templates of a config: about 200 milliseconds; other tasks run between two files."""
_HIDDEN: Final = "its content comes from a Secret, so that the error is not shown"


async def prepare_files(client: Client, namespace: str, files: Sequence[File], cluster: ClusterFacts) -> tuple[File, ...]:
    """Return the files with contents from Secrets, and with templates rendered. Raises MaterialFailed.

    The control plane is read live, and only if a file is a template.
    """
    resolved = await resolve_files(client, namespace, files)
    if not any(file.content_format == TEMPLATE for file in resolved):
        return resolved
    data, budget = template_data(await _control_plane_version(client, cluster)), Budget(MOST_STEPS)
    out = []
    for given, file in zip(files, resolved, strict=True):
        out.append(rendered(file, data, budget, is_secret=is_defined(given.content_from)))
        await asyncio.sleep(0)
    return tuple(out)


def template_data(version: str) -> dict[str, Any]:
    """Return the data for templates. The key `controlPlane` is absent without a known version, so that `{{ if .controlPlane }}` works."""
    return {"controlPlane": {"version": version}} if version else {}


def rendered(file: File, data: Mapping[str, Any], budget: Budget, *, is_secret: bool = False) -> File:
    """Return the file as it is written on the node. Raises MaterialFailed, which never quotes a Secret."""
    if file.content_format != TEMPLATE:
        return file
    path = quote(file.path)
    try:
        template: Template = gotemplate.parse(file.content)
    except TemplateError as error:
        why = _HIDDEN if is_secret else error
        raise MaterialFailed(f"failed to render templates: failed to parse template for file {path}: {why}") from None
    context = f"failed to render templates: failed to execute template for file {path}"
    try:
        content = template.render(data, strict=False, budget=budget)
    except TemplateError as error:
        raise MaterialFailed(f"{context}: {_HIDDEN if is_secret else error}") from None
    if len(content.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise MaterialFailed(f"{context}: rendered output exceeds the {MOST_BYTES} byte limit")
    return replace(file, content=content, content_format="")


async def _control_plane_version(client: Client, cluster: ClusterFacts) -> str:
    """Return the full version that the control plane wants; empty if there is none. Raises MaterialFailed."""
    if cluster.control_plane_ref is None:
        return ""
    try:
        external = await get_external(client.live, cluster.control_plane_ref, cluster.namespace)
        version = field_of(Found(external.object, external.contract), CONTRACTS[external.contract].control_plane.spec_version)
    except (ApiError, ContractUnknown, MalformedField) as error:
        raise MaterialFailed(f"failed to read control plane version: {error}") from error
    if not version:
        return ""
    try:
        return f"v{parse_version(version)}"
    except ValueError as error:
        raise MaterialFailed(f"failed to parse control plane version {quote(version)} for template data: {error}") from None
