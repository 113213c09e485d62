"""The calls of runtime extensions that a topology makes.

Nothing here calls anything. A computation that needs an answer is a generator: it yields a question and receives the answer, or an
`ExtensionError`. `ask` runs one with an `Extensions`, which is implemented over HTTPS, from recorded answers offline, or from assumptions
in a plan.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from clusterwright.api.meta import Json

T = TypeVar("T")

HOOKS_API_VERSION: Final = "hooks.runtime.cluster.x-k8s.io/v1alpha1"


class ExtensionError(Exception):
    """A call failed, or a handler reported a failure. The text is suitable for a condition."""


@dataclass(frozen=True, slots=True)
class CallHandler:
    """Call one handler by its name, `<handler>.<ExtensionConfig>`. The answer is the response.

    `request` has neither apiVersion nor kind; `settings` override those of the registration; the handler must serve the namespace of
    `subject`. `cached`: an answer of the last ten minutes with the same handler, registration and settings is sufficient.
    """

    hook: str
    handler: str
    subject: Json
    request: Json
    settings: Mapping[str, str] = field(default_factory=dict)
    cached: bool = False


@dataclass(frozen=True, slots=True)
class CallAll:
    """Call all handlers of a hook. The answer is one response: joined messages, and the smallest `retryAfterSeconds` that is not 0."""

    hook: str
    subject: Json
    request: Json


@dataclass(frozen=True, slots=True)
class ListHandlers:
    """List the handlers of a hook for an object. The answer has their names."""

    hook: str
    subject: Json


@dataclass(frozen=True, slots=True)
class Turn:
    """Let other tasks run: the computation has worked for a while. There is no answer."""


Question = CallHandler | CallAll | ListHandlers | Turn
Asking = Generator[Question, Any, T]
"""A computation with questions, and its result."""


class Extensions(Protocol):
    """The registered runtime extensions. Every method raises ExtensionError."""

    async def call(self, question: CallHandler) -> Json:
        """Return the response of one handler; its `status` is Success."""

    async def call_all(self, question: CallAll) -> Json:
        """Return the responses of all handlers as one."""

    async def handlers(self, question: ListHandlers) -> Sequence[str]:
        """Return the names of the handlers of a hook, sorted."""


async def ask(extensions: Extensions, asking: Asking[T]) -> T:
    """Return the result of a computation, with answers from the extensions."""
    answer: Any = None
    try:
        question = next(asking)
        while True:
            try:
                answer = await _answer(extensions, question)
            except ExtensionError as error:
                question = asking.throw(error)
            else:
                question = asking.send(answer)
    except StopIteration as done:
        result: T = done.value
        return result


async def _answer(extensions: Extensions, question: Question) -> Any:
    match question:
        case CallHandler():
            return await extensions.call(question)
        case CallAll():
            return await extensions.call_all(question)
        case ListHandlers():
            return await extensions.handlers(question)
        case Turn():
            return None


class NoExtensions:
    """No registered extensions: hooks need no calls, and a named handler does not exist."""

    async def call(self, question: CallHandler) -> Json:
        """Raise ExtensionError: the handler does not exist."""
        name = question.handler
        raise ExtensionError(
            f'failed to call extension handler "{name}": failed to get extension handler "{name}" from registry: '
            f'handler with name "{name}" has not been registered'
        )

    async def call_all(self, question: CallAll) -> Json:
        """Return an empty response."""
        return {"status": "Success"}

    async def handlers(self, question: ListHandlers) -> Sequence[str]:
        """Return no names."""
        return ()


_check: type[Extensions] = NoExtensions
