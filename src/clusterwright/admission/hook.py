"""Admit or refuse the writes of one kind, with the texts and forms that clients know from webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Literal

from clusterwright.admission.rule import WRITE, Default, Refused, Review, Rule, judge
from clusterwright.admission.workloads import Workloads
from clusterwright.api.codec import convert
from clusterwright.api.copying import replace
from clusterwright.api.meta import GroupVersionKind, Json, Object
from clusterwright.api.scheme import SCHEME, Resource
from clusterwright.apiserver.status import FieldError, StatusError, failure, forbidden_error, invalid_error
from clusterwright.runtime.client import Reader

Operation = Literal["CREATE", "UPDATE", "DELETE"]
Gates = Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Access:
    """The access of rules to facts outside the write."""

    reader: Reader
    workloads: Workloads = field(default_factory=Workloads)
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    worker: Executor | None = None
    """Runs costly rules; None: they run on the event loop, as in virtual time."""


Observe = Callable[[Review, Access], Awaitable[Any]]
"""Reads the facts for rules outside the write, before the first rule is evaluated. Raises Unobserved."""


class Unobserved(Exception):
    """A needed fact could not be read. The answer is an internal error."""


@dataclass(slots=True, kw_only=True)
class Request:
    """A write to admit. Defaulting changes `object` in place; `warnings` are for the client."""

    operation: Operation
    kind: GroupVersionKind
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    object: Json | None = None
    old_object: Json | None = None
    dry_run: bool = False
    warnings: list[str] = field(default_factory=list)


async def _nothing(review: Review, access: Access) -> None:
    del review, access


def _no_warnings(review: Review) -> Iterable[str]:
    del review
    return ()


@dataclass(frozen=True, kw_only=True)
class Hook:
    """The rows of one kind (or of a subresource of it), with their dependencies."""

    model: type[Object]
    of: type[Object] | None = None
    """The kind that the hook handles, if it differs from the model's: a subresource has its own model."""
    subresource: str = ""
    gate: Rule | None = None
    """A rule whose violation is a bare denial, without further rules."""
    defaults: tuple[Default, ...] = ()
    required: tuple[Rule, ...] = ()
    """Rules that defaulting evaluates before it reads or sets anything."""
    defaulted: tuple[Rule, ...] = ()
    """Rules that defaulting evaluates on its result."""
    rules: tuple[Rule, ...] = ()
    readable: Callable[[Json], None] = lambda obj: None
    """Raises ValueError for values that the type allows, but no reader can parse."""
    observe_default: Observe = _nothing
    observe: Observe = _nothing
    warn: Callable[[Review], Iterable[str]] = _no_warnings
    on: frozenset[str] = WRITE
    """The operations that are validated; defaulting handles creates and updates."""
    form: Literal["causes", "bare", "plain"] = "causes"
    """The form of refusals: 422 with a cause for each violated rule, 403 with a message only, the same without the field's name."""
    costly: Callable[[Review], bool] = lambda review: False
    """Whether the rules evaluate user input such as schemas, expressions and templates, which may take seconds."""
    denials_group: str = ""
    """The group in refusals, if it differs from the kind's; clients have always seen that."""
    purpose: str = "validation"
    default_group: str = ""
    """The group in the name of the defaulting hook, if it differs from the kind's."""

    @property
    def resource(self) -> Resource:
        """The resource that the hook handles."""
        return SCHEME.of(self.of or self.model)

    @property
    def kind(self) -> GroupVersionKind:
        """The kind that the hook handles."""
        return self.resource.gvk

    @property
    def is_mutating(self) -> bool:
        """Whether writes are defaulted."""
        return bool(self.defaults)

    def name(self, purpose: str = "") -> str:
        """Return the name of the hook: `validation.kubeadmconfig.bootstrap.cluster.x-k8s.io`."""
        group = (self.default_group if purpose == "default" else "") or self.kind.group
        return f"{purpose or self.purpose}.{self.kind.kind.lower()}.{group}"

    async def default(self, request: Request, gates: Gates, access: Access) -> None:
        """Fill in what is missing in `request.object`, in place; raises StatusError."""
        if not self.is_mutating or request.object is None:
            return
        hook = self.name("default")
        self._read(hook, request)
        review = self._review(request, gates)
        errors = judge(self.required, review)
        if not errors:
            review = replace(review, facts=await self._observe(hook, self.observe_default, review, access))
            try:
                for row in self.defaults:
                    row.fill(request.object, review)
            except Refused as error:
                raise denied(hook, error) from None
            errors = judge(self.defaulted, review)
        if errors:
            raise self._refusal(hook, request, errors)

    async def validate(self, request: Request, gates: Gates, access: Access) -> None:
        """Refuse a write with all violated rules at once; raises StatusError."""
        if request.operation not in self.on:
            return
        hook = self.name()
        self._read(hook, request)
        review = self._review(request, gates)
        if self.gate is not None and (errors := judge((self.gate,), review)):
            raise denied(hook, errors[0])
        review = replace(review, facts=await self._observe(hook, self.observe, review, access))
        request.warnings.extend(self.warn(review))
        if errors := await self._judged(review, access.worker):
            raise self._refusal(hook, request, errors)

    async def _judged(self, review: Review, worker: Executor | None) -> list[FieldError]:
        """Return the violations. Costly rules run on another thread, so that the event loop stays free."""
        if worker is None or not self.costly(review):
            return judge(self.rules, review)
        return await asyncio.get_running_loop().run_in_executor(worker, judge, self.rules, review)

    def _review(self, request: Request, gates: Gates) -> Review:
        return Review(
            operation=request.operation,
            new=request.object or {},
            old=request.old_object,
            gates=gates,
            dry_run=request.dry_run,
            model=self.model,
            namespace=request.namespace,
            name=request.name,
        )

    async def _observe(self, hook: str, observe: Observe, review: Review, access: Access) -> Any:
        try:
            return await observe(review, access)
        except Unobserved as error:
            raise failure(500, "InternalError", _text(hook, f"Internal error occurred: {error}")) from None

    def _read(self, hook: str, request: Request) -> None:
        """Refuse a body that does not fit the type: 400, without further checks."""
        try:
            for obj in filter(None, (request.object, request.old_object)):
                convert(obj, self.model)
                self.readable(obj)
        except ValueError as error:  # a DecodeError is one
            raise failure(400, "", _text(hook, error)) from None

    def _refusal(self, hook: str, request: Request, errors: Sequence[FieldError]) -> StatusError:
        if self.form == "plain":
            return denied(hook, errors[0].detail)
        if self.form == "bare":
            return denied(hook, errors[0] if len(errors) == 1 else f"[{', '.join(map(str, errors))}]")
        group, kind = self.denials_group or self.kind.group, self.kind.kind
        if request.operation == "DELETE":
            refusal = forbidden_error(group, kind, request.name, errors[0].detail)
        else:
            refusal = invalid_error(group, kind, request.name, errors)
        return StatusError(refusal.status | {"message": _text(hook, refusal)})


def denied(hook: str, text: object) -> StatusError:
    """Return a bare refusal: 403 with a message only."""
    return failure(403, "Forbidden", _text(hook, text))


def _text(hook: str, text: object) -> str:
    return f'admission webhook "{hook}" denied the request: {text}'
