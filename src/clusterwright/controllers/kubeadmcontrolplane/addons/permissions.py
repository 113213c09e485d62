"""The role binding that newer versions of kubeadm need and older ones did not create.

kubeadm has made the one of its administrators, `kubeadm:cluster-admins`, by itself since Kubernetes 1.29 (cluster-api #14081).
"""

from __future__ import annotations

from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.runtime.client import Client

CLUSTER_ROLE_BINDING = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")

_BINDINGS: tuple[tuple[str, str, Json], ...] = (
    ("kubeadm:apiserver-kubelet-client", "system:kubelet-api-admin", {"kind": "User", "name": "kube-apiserver-kubelet-client"}),
)


async def ensure_permissions(client: Client) -> None:
    """Create the bindings that newer kubeadm versions need; existing ones are left as they are. Raises ApiError."""
    for name, role, subject in _BINDINGS:
        if await client.find(CLUSTER_ROLE_BINDING, ObjectKey("", name)) is not None:
            continue
        await client.create(
            {
                "apiVersion": CLUSTER_ROLE_BINDING.api_version,
                "kind": CLUSTER_ROLE_BINDING.kind,
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", **subject}],
            }
        )
