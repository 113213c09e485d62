"""The calls of runtime extensions that a topology makes.

Nothing here calls anything. A computation that needs an answer is a generator: it yields a question and is sent the answer, or an
`ExtensionError` is thrown into it. `ask` drives one with an `Extensions`, which is implemented over HTTPS, from canned answers offline, or
by what a plan may assume.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from clusterwright.api.meta import Json

T = TypeVar("T")

HOOKS_API_VERSION: Final = "hooks.runtime.cluster.x-k8s.io/v1alpha1"


class ExtensionError(Exception):
    """A call failed, or a handler answered that it did. The text is fit for a condition."""


@dataclass(frozen=True, slots=True)
class CallHandler:
    """Ask one handler by its name, `<handler>.<ExtensionConfig>`. Answered with the response.

    `request` has neither apiVersion nor kind; `settings` go over those of the registration; `subject` is the object for whose namespace
    the handler must be meant. `cached`: an answer of the last ten minutes to the same handler, registration and settings will do.
    """

    hook: str
    handler: str
    subject: Json
    request: Json
    settings: Mapping[str, str] = field(default_factory=dict)
    cached: bool = False


@dataclass(frozen=True, slots=True)
class CallAll:
    """Ask all handlers of a hook. Answered with one response: messages joined, the smallest `retryAfterSeconds` that is not 0."""

    hook: str
    subject: Json
    request: Json


@dataclass(frozen=True, slots=True)
class ListHandlers:
    """Which handlers a hook has for an object. Answered with their names."""

    hook: str
    subject: Json


@dataclass(frozen=True, slots=True)
class Turn:
    """Let others have their turn: the computation has worked for a while. Answered with nothing."""


Question = CallHandler | CallAll | ListHandlers | Turn
Asking = Generator[Question, Any, T]
"""A computation that may ask, and its result."""


class Extensions(Protocol):
    """Runtime extensions, as far as they are registered. Every method raises ExtensionError."""

    async def call(self, question: CallHandler) -> Json:
        """Return the response of one handler; its `status` is Success."""

    async def call_all(self, question: CallAll) -> Json:
        """Return the responses of all handlers as one."""

    async def handlers(self, question: ListHandlers) -> Sequence[str]:
        """Return the names of the handlers of a hook, sorted."""


async def ask(extensions: Extensions, asking: Asking[T]) -> T:
    """Return the result of a computation whose questions the extensions answer."""
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
    """None is registered: hooks are done without being called, and a handler that is named does not exist."""

    async def call(self, question: CallHandler) -> Json:
        """The handler does not exist."""
        name = question.handler
        raise ExtensionError(
            f'failed to call extension handler "{name}": failed to get extension handler "{name}" from registry: '
            f'handler with name "{name}" has not been registered'
        )

    async def call_all(self, question: CallAll) -> Json:
        """Nobody is asked."""
        return {"status": "Success"}

    async def handlers(self, question: ListHandlers) -> Sequence[str]:
        """None."""
        return ()


_check: type[Extensions] = NoExtensions
