"""Execute a parsed template. A map without the key is an error (Go's `missingkey=error`), or has no value (its default)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, assert_never

from clusterwright.golang.quoting import quote
from clusterwright.gotemplate.functions import BUILTINS, SHORT_CIRCUITS
from clusterwright.gotemplate.literals import Overflow
from clusterwright.gotemplate.metering import Budget, Meter, flat_steps
from clusterwright.gotemplate.nodes import (
    Action,
    Body,
    Call,
    Chain,
    Dot,
    Field,
    Function,
    If,
    Jump,
    Literal,
    Nil,
    Operand,
    Pipeline,
    Range,
    Text,
    Variable,
)
from clusterwright.gotemplate.printing import sprint
from clusterwright.gotemplate.values import (
    INTEGERS,
    MAX_TEXT,
    Boxed,
    Int,
    Kind,
    Opaque,
    TemplateError,
    concatenate,
    is_true,
    kind_of,
    sorted_entries,
    unbox,
    without_surrogates,
)

MAX_CALLS = 60

_ABSENT: Any = object()
"""The mark of a missing value from an earlier command; None would be a value."""


class Evaluation:
    """One execution: its output, and its remaining budget."""

    def __init__(
        self, trees: Mapping[str, Body], functions: Mapping[str, Callable[..., Any]], *, strict: bool = True, budget: Budget | None = None
    ) -> None:
        self._trees = trees
        self.strict = strict
        self._functions = functions
        self._output: list[str] = []
        self._length = 0
        self._calls = 0
        self._budget = budget
        self.meter = Meter(budget)
        self.charge = self.meter.charge

    def run(self, name: str, data: Any) -> str:
        """Return the output of the named template; raises TemplateError."""
        try:
            _Frame(self, data).walk(self._trees[name], data)
        except RecursionError:
            raise TemplateError("nested too deeply") from None
        finally:
            if self._budget is not None:
                self._budget.left -= self.meter.steps
        return without_surrogates(concatenate(self._output))

    def write(self, text: str) -> None:
        """Append to the output."""
        self._length += len(text)
        if self._length > MAX_TEXT:
            raise TemplateError("the output is too long")
        self._output.append(text)

    def call(self, name: str, dot: Any) -> None:
        """Execute a named template, which sees none of the caller's variables."""
        if self._calls >= MAX_CALLS:
            raise TemplateError("exceeded maximum template depth")
        self._calls += 1
        _Frame(self, dot).walk(self._trees[name], dot)
        self._calls -= 1

    def is_defined(self, name: str) -> bool:
        """Return whether there is a template of this name."""
        return name in self._trees

    def apply(self, name: str, arguments: list[Any]) -> Any:
        """Return the value of a function other than `and` and `or`; the caller's own functions come before Go's."""
        own = self._functions.get(name)
        if own is not None:
            weight = self._pay(own, arguments)
            given = map(unbox, arguments)
            try:
                result = own(self.charge, *given) if getattr(own, "metered", False) else own(*given)
            except TemplateError:
                raise
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise TemplateError(f"error calling {name}: {error}") from error
        else:
            builtin = BUILTINS[name]
            if not builtin.least <= len(arguments) <= builtin.most:
                raise TemplateError(f"wrong number of args for {name}: {len(arguments)}")
            weight = self._pay(builtin, arguments)
            if builtin.wants_format:
                arguments[0] = unbox(arguments[0])
                if not isinstance(arguments[0], str):
                    raise TemplateError(f"wrong type for the format of {name}")
            result = builtin.call(self.charge, *arguments) if builtin.metered else builtin.call(*arguments)
        self.charge(1 + flat_steps([result], weight))
        return result

    def _pay(self, function: Any, arguments: list[Any]) -> int:
        """Charge for a call by the size of its arguments; return how often each part of them counts."""
        weight: int = getattr(function, "weight", 1)
        if getattr(function, "deep", False):
            self.meter.charge_deeply(arguments, weight)
        else:
            self.charge(flat_steps(arguments, weight))
        self.charge(1 + getattr(function, "steps", 0))
        return weight

    def short_circuit(self, name: str) -> bool | None:
        """Return the truth value at which `and` or `or` stops; None for any other function."""
        return None if name in self._functions else SHORT_CIRCUITS.get(name)


class _Frame:
    """A running template: its variables; of several with one name, the last counts."""

    def __init__(self, evaluation: Evaluation, dot: Any) -> None:
        self._evaluation = evaluation
        self._variables: list[tuple[str, Any]] = []
        self._places: dict[str, list[int]] = {}
        """The positions of a name's variables in the list."""
        self._declare("$", dot)

    # nodes

    def walk(self, body: Body, dot: Any) -> Jump | None:
        """Execute a body; return the jump that ended it early."""
        for node in body:
            self._evaluation.charge(1)
            jump: Jump | None = None
            match node:
                case Text(text):
                    self._evaluation.write(text)
                case Action(pipeline):
                    value = self._pipeline(pipeline, dot)
                    if not pipeline.variables:
                        self._print(value)
                case If():
                    jump = self._if(node, dot)
                case Range():
                    jump = self._range(node, dot)
                case Call(name, argument):
                    if not self._evaluation.is_defined(name):
                        raise TemplateError(f"template {name!r} not defined")
                    self._evaluation.call(name, self._pipeline(argument, dot) if argument else None)
                case Jump():
                    jump = node
                case _:
                    assert_never(node)
            if jump is not None:
                return jump
        return None

    def _print(self, value: Any) -> None:
        self._evaluation.meter.charge_deeply([value], 1)
        self._evaluation.write("<no value>" if value is None else sprint([value]))

    def _if(self, node: If, dot: Any) -> Jump | None:
        mark = len(self._variables)
        value = self._pipeline(node.pipeline, dot)
        if is_true(value):
            jump = self.walk(node.body, value if node.sets_dot else dot)
        else:
            jump = self.walk(node.otherwise, dot)
        self._forget(mark)
        return jump

    def _range(self, node: Range, dot: Any) -> Jump | None:
        outer = len(self._variables)
        names, is_assignment = node.pipeline.variables, node.pipeline.is_assignment
        value = self._pipeline(node.pipeline, dot)
        inner = len(self._variables)
        is_empty = True
        for index, element in self._elements(value, len(names)):
            is_empty = False
            self._evaluation.charge(1)
            # A single variable gets the element.
            for offset, (name, part) in enumerate(zip(names, (index, element)[2 - len(names) :], strict=True)):
                if is_assignment:
                    self._assign(name, part)
                else:
                    self._variables[inner - len(names) + offset] = (name, part)
            jump = self.walk(node.body, element)
            self._forget(inner)
            if jump is not None and jump.is_break:
                break
        # Go leaves the variables of the range in sight of its else.
        jump = self.walk(node.otherwise, dot) if is_empty else None
        self._forget(outer)
        return jump

    def _elements(self, value: Any, variables: int) -> Iterator[tuple[Any, Any]]:
        """Yield index or key, and element."""
        match kind_of(value):
            case Kind.NIL:
                return
            case Kind.SLICE:
                for index, element in enumerate(value):
                    yield Int(index), Boxed(element)
            case Kind.MAP:
                self._evaluation.charge(len(value))
                for key, element in sorted_entries(value):
                    yield key, Boxed(element)
            case kind if kind in INTEGERS:
                if variables > 1:
                    raise TemplateError(f"can't use {value} to iterate over more than one variable")
                for number in range(value):
                    yield None, type(value)(number)
            case kind:
                raise TemplateError(f"range can't iterate over {kind.value}")

    # values

    def _pipeline(self, pipeline: Pipeline, dot: Any) -> Any:
        """Return the value of the last command, without its interface."""
        value = _ABSENT
        for command in pipeline.commands:
            self._evaluation.charge(1)
            value = unbox(self._command(command, dot, value))
        for name in pipeline.variables:
            if pipeline.is_assignment:
                self._assign(name, value)
            else:
                self._declare(name, value)
        return value

    def _declare(self, name: str, value: Any) -> None:
        self._places.setdefault(name, []).append(len(self._variables))
        self._variables.append((name, value))

    def _forget(self, mark: int) -> None:
        """Drop the variables that were declared since there were `mark` of them."""
        while len(self._variables) > mark:
            self._places[self._variables.pop()[0]].pop()

    def _place(self, name: str) -> int:
        places = self._places.get(name)
        if not places:
            raise TemplateError(f"undefined variable: {name}")
        return places[-1]

    def _assign(self, name: str, value: Any) -> None:
        self._variables[self._place(name)] = (name, value)

    def _variable(self, name: str) -> Any:
        return self._variables[self._place(name)][1]

    def _command(self, command: tuple[Operand, ...], dot: Any, final: Any) -> Any:
        first, *arguments = command
        if isinstance(first, Function):
            return self._function(first.name, arguments, dot, final)
        if arguments or final is not _ABSENT:
            return self._method(first, arguments, dot, final)
        if isinstance(first, Nil):
            raise TemplateError("nil is not a command")
        return self._operand(first, dot)

    def _method(self, operand: Operand, arguments: list[Operand], dot: Any, final: Any) -> Any:
        """Return a member of an opaque value that takes arguments; apart from functions, nothing else takes any."""
        receiver: Any = None
        match operand:
            case Field((*names, name)):
                receiver = self._field(dot, tuple(names))
            case Variable(variable, (*names, name)):
                receiver = self._field(self._variable(variable), tuple(names))
            case Chain(origin, (*names, name)):
                receiver = self._field(self._operand(origin, dot), tuple(names))
        receiver = unbox(receiver)
        if not isinstance(receiver, Opaque):
            raise TemplateError("can't give argument to non-function")
        values = [unbox(self._operand(argument, dot)) for argument in arguments]
        return receiver.member(name, tuple(values if final is _ABSENT else [*values, unbox(final)]))

    def _operand(self, operand: Operand, dot: Any) -> Any:
        match operand:
            case Literal(Overflow(text)):
                raise TemplateError(f"{text} overflows int")
            case Literal(value):
                return value
            case Nil():
                return None
            case Dot():
                return dot
            case Field(names, place):
                try:
                    return self._field(dot, names)
                except TemplateError as error:
                    error.place, error.field = place, "".join(f".{name}" for name in names)
                    raise
            case Variable(name, names):
                return self._field(self._variable(name), names)
            case Function(name):
                return self._function(name, [], dot, _ABSENT)
            case Chain(origin, names):
                return self._field(self._operand(origin, dot), names)
            case Pipeline():
                return self._pipeline(operand, dot)
        assert_never(operand)

    def _function(self, name: str, operands: list[Operand], dot: Any, final: Any) -> Any:
        stop = self._evaluation.short_circuit(name)
        if stop is not None:
            if not operands and final is _ABSENT:
                raise TemplateError(f"wrong number of args for {name}: want at least 1 got 0")
            value = None
            for operand in operands:
                value = self._operand(operand, dot)
                if is_true(value) == stop:
                    return value
            return value if final is _ABSENT else final
        arguments = [self._operand(operand, dot) for operand in operands]
        return self._evaluation.apply(name, arguments if final is _ABSENT else [*arguments, final])

    def _field(self, value: Any, names: tuple[str, ...]) -> Any:
        for name in names:
            receiver = unbox(value)
            kind = kind_of(receiver)
            if kind is Kind.NIL and not self._evaluation.strict:
                return None
            if kind is Kind.STRUCT:
                value = receiver.member(name, ())
                continue
            if kind is not Kind.MAP:
                raise TemplateError(f"can't evaluate field {name} in type {kind.value}")
            if name in receiver:
                value = Boxed(receiver[name])
            elif self._evaluation.strict:
                raise TemplateError(f"map has no entry for key {quote(name)}")
            else:
                value = None
        return value
