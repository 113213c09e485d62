"""Read access to metrics, traces and diagnosis of an embedded plane: a ServiceAccount and its tokens."""

from __future__ import annotations

from typing import Final

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.runtime.rest import RestClient

READER: Final = ObjectKey("kube-system", "clusterwright-insight")
_RBAC: Final = "rbac.authorization.k8s.io"
_SECONDS: Final = 600


def reader() -> list[Json]:
    """Return the account and its right to read what a manager serves: `kubectl create token` makes tokens of it."""
    meta = {"name": READER.name}
    rules = [
        {"nonResourceURLs": ["/metrics", "/traces", "/debug/*"], "verbs": ["get"]},
        {"nonResourceURLs": ["/debug/flags/*"], "verbs": ["put"]},
    ]
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {**meta, "namespace": READER.namespace}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": READER.name},
            "subjects": [{"kind": "ServiceAccount", "name": READER.name, "namespace": READER.namespace}],
        },
    ]


async def token(client: RestClient) -> str:
    """Return a short-lived token of the account; raises ApiError."""
    request: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": _SECONDS}}
    answer = await client.create_subresource(GroupVersionKind("", "v1", "ServiceAccount"), READER, "token", request)
    return str(answer["status"]["token"])
