"""The objects of every namespace: the ServiceAccount `default`, and the certificate of the server's authority."""

from __future__ import annotations

from typing import Final

from clusterwright.api.meta import Json
from clusterwright.apiserver.core import Core
from clusterwright.apiserver.storage.store import Event, Table
from clusterwright.apiserver.system import loading
from clusterwright.apiserver.system.garbage import owned_meta

_ACCOUNT: Final = ("serviceaccounts", "default")
_AUTHORITY: Final = ("configmaps", "kube-root-ca.crt")
_NOTE: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP."
)


class NamespaceContent:
    """Creates both in every namespace, and again after their deletion."""

    def __init__(self, server: Core, authority: bytes) -> None:
        self.server, self._authority = server, authority.decode()
        server.store.listeners.append(self.offer)
        for name in list(server.store.table("namespaces").objects):
            server.later(lambda name=name: self.provide(name))  # type: ignore[misc]

    def offer(self, table: Table, event: Event) -> None:
        """Create both in new namespaces, and again after their deletion."""
        entry = event.entry
        if table.name == "namespaces" and event.type == "ADDED":
            self.server.later(lambda: self.provide(entry.name))
        elif event.type == "DELETED" and (table.name, entry.name) in {_ACCOUNT, _AUTHORITY}:
            self.server.later(lambda: self.provide(entry.namespace))

    def provide(self, name: str) -> None:
        """Create both in a namespace that is not being deleted."""
        namespace = self.server.store.table("namespaces").objects.get(name)
        if namespace is None or owned_meta(namespace).deletion_timestamp:
            return
        account: Json = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        meta = {"name": "kube-root-ca.crt", "namespace": name, "annotations": {"kubernetes.io/description": _NOTE}}
        authority: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ca.crt": self._authority}}
        loading.ensure(self.server, [account, authority], update=False)
