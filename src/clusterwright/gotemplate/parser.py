"""Go's template grammar: from tokens to trees, one for the template itself and one for each definition in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from clusterwright.golang.quoting import quote
from clusterwright.gotemplate import literals
from clusterwright.gotemplate.lexer import KEYWORDS, Token, Type, tokens
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
    Node,
    Operand,
    Pipeline,
    Range,
    Text,
    Variable,
    is_blank,
)
from clusterwright.gotemplate.values import TemplateError

MAX_NESTING = 100
"""The deepest nesting of parentheses and control structures; Go allows 10000 for the first and has no limit for the second."""

_OPERANDS = frozenset({Type.BOOL, Type.NUMBER, Type.STRING, Type.DOT, Type.FIELD, Type.VARIABLE, Type.IDENTIFIER, Type.OPEN})


def parse_trees(text: str, name: str, functions: Collection[str]) -> dict[str, Body]:
    """Return the bodies by template name, the text's own under `name`; raises TemplateError."""
    # A function of that name takes the word from the language.
    keywords = KEYWORDS - ({"break", "continue"} & set(functions))
    parser = _Parser(list(tokens(text, keywords)), functions)
    parser.add(name, parser.template())
    return parser.trees


@dataclass
class _Scope:
    """The state of one definition while it is parsed: its variables so far, and the number of open ranges."""

    variables: list[str] = field(default_factory=lambda: ["$"])
    known: Counter[str] = field(default_factory=lambda: Counter("$"))
    """The number of declarations of each variable."""
    ranges: int = 0

    def declare(self, variable: str) -> None:
        """Add a variable."""
        self.variables.append(variable)
        self.known[variable] += 1

    def forget(self, mark: int) -> None:
        """Drop the variables that were declared since there were `mark` of them."""
        self.known.subtract(self.variables[mark:])
        del self.variables[mark:]


class _Parser:
    def __init__(self, tokens: list[Token], functions: Collection[str]) -> None:
        self.trees: dict[str, Body] = {}
        self._tokens = tokens
        self._position = 0
        self._functions = functions
        self._scope = _Scope()
        self._nesting = 0

    # tokens

    def _peek(self, *, after_space: bool = True) -> Token:
        if after_space:
            while self._tokens[self._position].type is Type.SPACE:
                self._position += 1
        return self._tokens[self._position]

    def _next(self, *, after_space: bool = True) -> Token:
        token = self._peek(after_space=after_space)
        self._position += token.type is not Type.END
        return token

    def _expect(self, type_: Type, context: str) -> Token:
        token = self._next()
        if token.type is not type_:
            raise self._unexpected(token, context)
        return token

    def _at_word(self, words: Iterable[str]) -> bool:
        token = self._peek()
        return token.type is Type.KEYWORD and token.text in words

    def _error(self, message: str) -> TemplateError:
        return TemplateError(f"line {self._tokens[self._position].line}: {message}")

    def _unexpected(self, token: Token, context: str) -> TemplateError:
        return TemplateError(f"line {token.line}: unexpected {token.text!r} in {context}")

    def _deeper(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise self._error("nested too deeply")

    # bodies

    def add(self, name: str, body: Body) -> None:
        """Define a template. A blank one counts only until there is another."""
        known = self.trees.get(name)
        if known is None or is_blank(known):
            self.trees[name] = body
        elif not is_blank(body):
            raise self._error(f"multiple definition of template {name!r}")

    def template(self) -> Body:
        """Return the outermost body; only here are definitions allowed."""
        nodes: list[Node] = []
        while self._peek().type is not Type.END:
            start = self._position
            if self._next().type is Type.LEFT and self._at_word({"define"}):
                self._next()
                self._definition()
                continue
            self._position = start
            node = self._node()
            if isinstance(node, str):
                raise self._error(f"unexpected {node}")
            nodes.append(node)
        return tuple(nodes)

    def _definition(self) -> None:
        name = literals.unquote(self._expect(Type.STRING, "define clause").text)
        self._expect(Type.RIGHT, "define clause")
        self.add(name, self._separate_body("define clause"))

    def _separate_body(self, context: str) -> Body:
        """Return a body that sees no outer variable, and its end."""
        outer, self._scope = self._scope, _Scope()
        body, closer = self._body()
        if closer != "end":
            raise self._error(f"unexpected {closer} in {context}")
        self._scope = outer
        return body

    def _body(self) -> tuple[Body, str]:
        """Return the nodes up to `end` or `else`, and the word that ended them."""
        nodes: list[Node] = []
        while self._peek().type is not Type.END:
            node = self._node()
            if isinstance(node, str):
                return tuple(nodes), node
            nodes.append(node)
        raise self._error("unexpected EOF")

    def _node(self) -> Node | str:
        """Return text or an action; the word itself for `end` and `else`."""
        token = self._next()
        if token.type is Type.TEXT:
            return Text(token.text)
        if token.type is not Type.LEFT:
            raise self._unexpected(token, "input")
        if self._peek().type is not Type.KEYWORD or self._at_word({"nil"}):
            return Action(self._pipeline("command", Type.RIGHT))
        return self._control(self._next())

    def _control(self, keyword: Token) -> Node | str:
        match keyword.text:
            case "if":
                return self._conditional("if")
            case "with":
                return self._conditional("with")
            case "range":
                return self._range()
            case "template":
                return self._call()
            case "block":
                return self._block()
            case "break" | "continue":
                self._expect(Type.RIGHT, keyword.text)
                if not self._scope.ranges:
                    raise self._error(f"{keyword.text} outside range")
                return Jump(keyword.text == "break")
            case "end":
                self._expect(Type.RIGHT, "end")
                return "end"
            case "else":
                # What follows an `else if` or `else with` is read as the next control structure.
                if not self._at_word({"if", "with"}):
                    self._expect(Type.RIGHT, "else")
                return "else"
        raise self._unexpected(keyword, "command")

    def _conditional(self, word: str) -> If:
        pipeline, body, otherwise = self._branches(word)
        return If(pipeline, body, otherwise, sets_dot=word == "with")

    def _range(self) -> Range:
        return Range(*self._branches("range"))

    def _branches(self, word: str) -> tuple[Pipeline, Body, Body]:
        variables = len(self._scope.variables)
        self._deeper()
        pipeline = self._pipeline(word, Type.RIGHT)
        self._scope.ranges += word == "range"
        body, closer = self._body()
        self._scope.ranges -= word == "range"
        otherwise: Body = ()
        if closer == "else":
            if word != "range" and self._at_word({word}):
                self._next()
                otherwise = (self._conditional(word),)
            else:
                otherwise, closer = self._body()
                if closer != "end":
                    raise self._error(f"expected end; found {closer}")
        self._nesting -= 1
        self._scope.forget(variables)
        return pipeline, body, otherwise

    def _call(self) -> Call:
        name = literals.unquote(self._expect(Type.STRING, "template clause").text)
        if self._peek().type is Type.RIGHT:
            self._next()
            return Call(name, None)
        return Call(name, self._pipeline("template clause", Type.RIGHT))

    def _block(self) -> Call:
        name = literals.unquote(self._expect(Type.STRING, "block clause").text)
        pipeline = self._pipeline("block clause", Type.RIGHT)
        self._deeper()
        self.add(name, self._separate_body("block clause"))
        self._nesting -= 1
        return Call(name, pipeline)

    # pipelines

    def _pipeline(self, context: str, end: Type) -> Pipeline:
        variables, is_assignment = self._declarations(context)
        commands: list[tuple[Operand, ...]] = []
        while self._peek().type is not end:
            token = self._peek()
            if token.type not in _OPERANDS and not self._at_word({"nil"}):
                raise self._unexpected(token, context)
            commands.append(self._command())
        self._next()
        if not commands:
            raise self._error(f"missing value for {context}")
        if any(isinstance(command[0], Literal | Nil | Dot) for command in commands[1:]):
            raise self._error("non executable command in pipeline")
        return Pipeline(tuple(commands), tuple(variables), is_assignment)

    def _declarations(self, context: str) -> tuple[list[str], bool]:
        """Return the variables before `:=` or `=`; only a range may have two."""
        variables: list[str] = []
        while self._peek().type is Type.VARIABLE:
            start = self._position
            variable = self._next().text
            follower = self._peek()
            is_comma = follower.type is Type.CHARACTER and follower.text == ","
            if not is_comma and follower.type not in {Type.ASSIGN, Type.DECLARE}:
                self._position = start
                break
            self._next()
            variables.append(variable)
            self._scope.declare(variable)
            if not is_comma:
                return variables, follower.type is Type.ASSIGN
            if context != "range" or len(variables) > 1:
                raise self._error(f"too many declarations in {context}")
            if self._peek().type not in {Type.VARIABLE, Type.RIGHT, Type.CLOSE}:
                raise self._error("range can only initialize variables")
        return variables, False

    def _command(self) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while True:
            self._peek()
            operand = self._operand()
            if operand is not None:
                operands.append(operand)
            token = self._peek(after_space=False)
            if token.type is Type.SPACE:
                continue
            if token.type is Type.PIPE:
                self._next()
            elif token.type not in {Type.RIGHT, Type.CLOSE}:
                raise self._unexpected(token, "operand")
            break
        if not operands:
            raise self._error("empty command")
        return tuple(operands)

    def _operand(self) -> Operand | None:
        """Return a term with the fields after it; None if no term follows."""
        term = self._term()
        further: list[Token] = []
        while term is not None and self._peek(after_space=False).type is Type.FIELD:
            further.append(self._next())
        if not further:
            return term
        names = [token.text[1:] for token in further]
        match term:
            case Field(first):
                return Field((*first, *names), (further[0].line, further[0].column))
            case Variable(variable):
                return Variable(variable, tuple(names))
            case Function() | Pipeline():
                return Chain(term, tuple(names))
        raise self._error("unexpected . after a literal")

    def _term(self) -> Operand | None:
        token = self._peek()
        match token.type:
            case Type.IDENTIFIER:
                if token.text not in self._functions:
                    raise self._error(f"function {quote(token.text)} not defined")
                term: Operand = Function(token.text)
            case Type.DOT:
                term = Dot()
            case Type.VARIABLE:
                if not self._scope.known[token.text]:
                    raise self._error(f"undefined variable {token.text!r}")
                term = Variable(token.text)
            case Type.FIELD:
                term = Field((token.text[1:],), (token.line, token.column))
            case Type.BOOL:
                term = Literal(token.text == "true")
            case Type.NUMBER:
                term = Literal(literals.number(token.text))
            case Type.STRING:
                term = Literal(literals.unquote(token.text))
            case Type.OPEN:
                self._next()
                self._deeper()
                term = self._pipeline("parenthesized pipeline", Type.CLOSE)
                self._nesting -= 1
                return term
            case _:
                if not self._at_word({"nil"}):
                    return None
                term = Nil()
        self._next()
        return term
