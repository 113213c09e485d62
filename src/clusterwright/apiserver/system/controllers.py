"""The controllers that a server runs itself, each within the request that causes its work."""

from __future__ import annotations

from clusterwright.apiserver.core import Core
from clusterwright.apiserver.system.events import EventExpiry
from clusterwright.apiserver.system.flowcontrol import FlowControl
from clusterwright.apiserver.system.garbage import Collector
from clusterwright.apiserver.system.namespaces import NamespaceController
from clusterwright.apiserver.system.roles import RoleAggregator
from clusterwright.apiserver.system.serviceaccounts import NamespaceContent


def start_controllers(server: Core, authority: bytes = b"") -> None:
    """Let a server collect garbage, empty namespaces, aggregate roles, expire old Events and maintain budgets from now on.

    With the certificate of its `authority` it also creates a ServiceAccount and that certificate in every namespace, and the flow control
    objects of every cluster.
    """
    server.computes_budgets = True
    for controller in (Collector, NamespaceController, RoleAggregator, EventExpiry):
        controller(server)
    if authority:
        NamespaceContent(server, authority)
        FlowControl(server)
    server.drain()
