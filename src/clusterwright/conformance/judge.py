"""Judge a provider that runs against an API server, in any language, through the API alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from clusterwright.api.meta import GroupVersionKind, Json
from clusterwright.api.scheme import Resource
from clusterwright.conformance.definitions import resolved
from clusterwright.conformance.evidence import Role, Write
from clusterwright.conformance.scenario import NORMAL, Pace, Plan, Scenario
from clusterwright.conformance.verdict import Judgement, decide, evidence
from clusterwright.runtime.rest import RestClient

_CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
_ROLE: Final = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
_TEMPLATE: Final = "Template"


class UnknownKind(ValueError):
    """The API server does not serve the kind of a given object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a provider is judged."""

    namespace: str = "default"
    prefix: str = "conformance"
    """Of the names of all objects that are created."""
    secret: str = "clusterwright-conformance-secret"  # noqa: S105 - it is one only by its place
    """A text for the bootstrap data that nothing else has."""
    pace: Pace = NORMAL
    failure_domain: str = ""
    """The failure domain of Machines; default: the first one of their Cluster."""
    data: str = ""
    """Bootstrap data for machines that boot; default: a cloud-config that does nothing."""
    restart: Callable[[], Awaitable[None]] | None = None
    """Restarts the provider; without it, PB-7 is not judged."""
    writes: Callable[[], Sequence[Write]] | None = None
    """Returns the writes that the API server has answered, from its audit log."""
    cluster_template: Json | None = None
    """The infrastructure of the Machines' Cluster; default: a DevCluster in memory."""
    definitions_only: bool = False


async def judge(client: RestClient, role: Role, template: Json, options: Options | None = None) -> Judgement:
    """Return the outcome of all rules for the kind that a template (or an object of the kind) names. Raises UnknownKind, ApiError."""
    options = options or Options()
    crds = [dict(crd.json) for crd in await client.list(_CRD)]
    roles = [dict(one.json) for one in await client.list(_ROLE)]
    kind, template_kind = _found(crds, template)
    seen = evidence(role, kind, template_kind, roles)
    resource = _resource(kind)
    if resource is None or options.definitions_only:
        return decide(seen)
    cluster = options.cluster_template
    plan = Plan(
        namespace=options.namespace,
        prefix=options.prefix,
        template=template,
        secret=options.secret,
        cluster_template=cluster,
        cluster_resource=_resource(_found(crds, cluster)[0]) if cluster is not None else None,
        failure_domain=options.failure_domain,
        data=options.data,
        pace=options.pace,
        restart=options.restart,
        writes=options.writes,
    )
    run = await Scenario(client, seen, resource, plan).play()
    return decide(evidence(role, kind, template_kind, roles, run))


def _found(crds: Sequence[Json], template: Json) -> tuple[Json, Json | None]:
    """Return the definitions of the kind and of its template."""
    group, kind = template["apiVersion"].rpartition("/")[0], template["kind"]
    of_group = {crd["spec"]["names"]["kind"]: crd for crd in crds if crd["spec"]["group"] == group}
    name = kind.removesuffix(_TEMPLATE)
    if name not in of_group:
        raise UnknownKind(f"no CustomResourceDefinition of kind {name} in group {group}: install the provider first")
    return of_group[name], of_group.get(name + _TEMPLATE)


def _resource(crd: Json) -> Resource | None:
    """Return the kind in the version that core controllers read; None without contract."""
    found, spec = resolved(crd), crd["spec"]
    if found is None:
        return None
    return Resource(
        GroupVersionKind(spec["group"], found.version, spec["names"]["kind"]), spec["names"]["plural"], spec["scope"] == "Namespaced"
    )
