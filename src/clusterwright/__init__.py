"""Cluster API in Python: controllers, an embedded API server, and decisions that can be read, tested and explained.

The names of this module, and those of the packages below that have an `__all__`, are the public API; everything else may
change. A name costs nothing until it is asked for.

    clusterwright.decide(objects, "Cluster/ns/name")     one reconcile pass, offline
    clusterwright.explain(parse(text), "Cluster/ns/n")   why a cluster is as it is
    clusterwright.crds()                                 the definitions of all kinds
    clusterwright.build_manager(transport, ...)          all controllers, ready to run
    clusterwright.tables, .conditions, .testing          decision tables, the algebra of conditions, planes for tests
    clusterwright.plan                                   what a change will do before it is made
    clusterwright.provider                               for infrastructure providers: the contract, kept
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from clusterwright import api, conditions, plan, provider, tables, testing
    from clusterwright.api.crds import crds
    from clusterwright.app import build_manager
    from clusterwright.offline.bundle import Bundle, parse
    from clusterwright.offline.explain import explain
    from clusterwright.runtime.manager import Manager
    from clusterwright.runtime.reconcile import Result
    from clusterwright.runtime.rest import RestClient

__version__ = "0.1.0"
__all__ = [
    "Bundle",
    "Manager",
    "RestClient",
    "Result",
    "api",
    "build_manager",
    "conditions",
    "crds",
    "decide",
    "explain",
    "parse",
    "plan",
    "provider",
    "tables",
    "testing",
]

_FROM: Final = {
    "Bundle": "offline.bundle",
    "Manager": "runtime.manager",
    "RestClient": "runtime.rest",
    "Result": "runtime.reconcile",
    "build_manager": "app",
    "crds": "api.crds",
    "explain": "offline.explain",
    "parse": "offline.bundle",
}
_PACKAGES: Final = frozenset({"api", "conditions", "plan", "provider", "tables", "testing"})


def decide(objects: Sequence[Mapping[str, Any]], subject: str, controller: str = "") -> Mapping[str, Any]:
    """Run one reconcile pass of the subject's controller, or of the one named, offline. See `clusterwright.offline.decide`."""
    from clusterwright.offline.decide import decide as run

    return run(objects, subject, controller)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"clusterwright.{name}")
    if name in _FROM:
        return getattr(import_module(f"clusterwright.{_FROM[name]}"), name)
    raise AttributeError(f"module 'clusterwright' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
