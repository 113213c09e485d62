"""The evidence about a provider: its definitions, the states of its objects over time, Events, and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from clusterwright.api.contract import CONTRACTS, Contract, ContractVersion
from clusterwright.api.meta import Json

Role = Literal["InfraCluster", "InfraMachine", "InfraMachinePool", "BootstrapConfig", "ControlPlane"]
ROLES: Final[tuple[Role, ...]] = ("InfraCluster", "InfraMachine", "InfraMachinePool", "BootstrapConfig", "ControlPlane")
MADE: Final = ("first", "second", "refused", "interrupted", "scaled")
"""The subjects that the provider must make, see `scenario`."""
SCALED: Final = "scaled"
"""The subject whose MachinePool is scaled: what it shows of its machines changes."""

KEPT_LABEL: Final = "conformance.clusterwright.example.com/kept"
"""A label and an annotation of every object of a run, and the finalizer of one: a provider must leave them alone."""
IN_PLACE: Final = "conformance.clusterwright.example.com/in-place"
"""An annotation and a label that the run adds to a provisioned object."""


class NotSeen(Exception):
    """The check cannot be made: the feature is not used, or the API does not show it. The message says which, and what would help."""


class Advice(str):
    """A finding that does not break a rule."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class State:
    """An object from a moment on; None: it does not exist."""

    at: float
    object: Json | None


@dataclass(slots=True)
class Subject:
    """One object of the provider, with all its states."""

    name: str
    states: list[State] = field(default_factory=list)

    @property
    def last(self) -> Json | None:
        """Return the latest state."""
        return self.states[-1].object if self.states else None

    @property
    def objects(self) -> list[Json]:
        """Return all states in which it existed."""
        return [state.object for state in self.states if state.object is not None]

    def at(self, moment: float) -> Json | None:
        """Return the state just before a moment."""
        return next((state.object for state in reversed(self.states) if state.at < moment), None)

    def by(self, moment: float) -> Json | None:
        """Return the state at a moment, with what happened in it."""
        return next((state.object for state in reversed(self.states) if state.at <= moment), None)

    def during(self, span: Span) -> list[State]:
        """Return the states of a span of time: that of its beginning, and all later ones."""
        begin, end = span
        first = next((state for state in reversed(self.states) if state.at <= begin), None)
        return [*([first] if first else []), *(state for state in self.states if begin < state.at < end)]


Span = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Write:
    """A request that changes an object, from the audit log of the plane."""

    at: float
    path: str
    code: int


@dataclass(slots=True)
class Run:
    """The dynamic part: what happened while the run created, paused, changed and deleted objects."""

    subjects: dict[str, Subject] = field(default_factory=dict)
    """By purpose, see `scenario`."""
    spans: dict[str, Span] = field(default_factory=dict)
    """When each stage of the run was."""
    events: list[Json] = field(default_factory=list)
    secret: str = ""
    """A text that only the bootstrap data has."""
    failure_domain: str = ""
    """The failure domain that was asked for."""
    dry_run: str | None = None
    """The error of a dry run on the template; empty: it was accepted; None: it was not tried."""
    secrets: dict[str, Json] = field(default_factory=dict)
    """The Secrets that BootstrapConfigs name and the kubeconfigs of ControlPlanes, by the name of the object."""
    machines: dict[str, Sequence[Json]] = field(default_factory=dict)
    """The machines of InfraMachinePools that name the kind of theirs, by the name of the pool."""
    writes: Sequence[Write] | None = None
    """None: the audit log of the plane is not known."""
    is_identity_given: bool = False
    """Whether the given template has the field that the provider sets otherwise, such as the endpoint of a cluster."""
    could_restart: bool = False
    could_refuse: bool = False

    def span(self, stage: str) -> Span:
        """Return when a stage was; raises NotSeen."""
        if stage not in self.spans:
            raise NotSeen(f"the run did not reach the stage '{stage}'")
        return self.spans[stage]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that is known about one kind of a provider."""

    role: Role
    kind: Json
    """Its CustomResourceDefinition."""
    template: Json | None
    """That of its template."""
    cluster_roles: Sequence[Json] = ()
    contract: ContractVersion | None = None
    run: Run | None = None

    @property
    def ran(self) -> Run:
        """Return the dynamic part; raises NotSeen."""
        if self.run is None:
            raise NotSeen("objects cannot be read without a contract label" if self.contract is None else "only definitions were judged")
        return self.run

    @property
    def paths(self) -> Contract:
        """Return the paths of the contract's fields; raises NotSeen."""
        if self.contract is None:
            raise NotSeen("the definition names no contract")
        return CONTRACTS[self.contract]


Finding = str
Check = Callable[[Evidence], Iterator[Finding]]
"""Yields what is wrong (text, or Advice); raises NotSeen."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the contract."""

    id: str
    title: str
    roles: tuple[Role, ...]
    mandatory: bool
    """Whether every provider must implement it; others are judged if they are implemented."""
    checked: str
    """The requirement, as it is checked."""
    fix: str
    """The advice to a provider that breaks it."""
    check: Check
    contracts: tuple[ContractVersion, ...] = ("v1beta1", "v1beta2")
