"""The controllers that a server runs itself, each within the request that gives it work."""

from __future__ import annotations

from clusterwright.apiserver.core import Core
from clusterwright.apiserver.system.events import EventExpiry
from clusterwright.apiserver.system.flowcontrol import FlowControl
from clusterwright.apiserver.system.garbage import Collector
from clusterwright.apiserver.system.namespaces import NamespaceController
from clusterwright.apiserver.system.roles import RoleAggregator
from clusterwright.apiserver.system.serviceaccounts import NamespaceContent


def start_controllers(server: Core, authority: bytes = b"") -> None:
    """Have a server collect garbage, empty namespaces, aggregate roles, forget old Events and keep budgets from now on.

    With the certificate of its `authority` it also gives every namespace a ServiceAccount and that certificate, and keeps the
    objects of flow control that every cluster has.
    """
    server.computes_budgets = True
    for controller in (Collector, NamespaceController, RoleAggregator, EventExpiry):
        controller(server)
    if authority:
        NamespaceContent(server, authority)
        FlowControl(server)
    server.drain()
