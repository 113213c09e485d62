"""Parse CEL source text to syntax trees."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 100
MAX_LENGTH: Final = 100_000
_LONGEST: Final = 30
"""The most digits of a number: with more it is always too large."""

RESERVED: Final = frozenset({
    "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
    "void", "while",
})  # fmt: skip

_TOKEN: Final = re.compile(
    r"""(?P<space>[\t\ \r\n\f]+|//[^\n]*)
      |(?P<float>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?))
      |(?P<uint>0x[0-9a-fA-F]+[uU]|\d+[uU])
      |(?P<int>0x[0-9a-fA-F]+|\d+)
      |(?P<text>(?:[rR][bB]?|[bB][rR]?)?(?:\"\"\"|'''|"|'))
      |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
      |(?P<quoted>`[A-Za-z0-9_.\-/ ]+`)
      |(?P<op>\&\&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,\[\](){}])""",
    re.VERBOSE | re.ASCII,
)


class SyntaxProblem(Exception):
    """The text is not CEL. `offset` points into the source; `earlier` are recoverable problems before it."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.earlier: list[SyntaxProblem] = []


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree. `op` names it; `args` are its children, `value` its literal or name."""

    op: str
    at: int
    args: tuple[Node, ...] = ()
    value: Any = None


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int
    value: Any = None


def parse(source: str) -> Node:
    """Return the tree of an expression; raises SyntaxProblem."""
    if len(source) > MAX_LENGTH:
        raise SyntaxProblem("expression code point size exceeds limit", 0)
    return _Parser(source).parse()


def _unrecognised(source: str, at: int, end: int) -> SyntaxProblem:
    """Return the text that begins no token; it includes the characters read to find that out, and parsing continues after it."""
    shown = source[at:end].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return SyntaxProblem(f"Syntax error: token recognition error at: '{shown}'", at)


def _tokens(source: str, problems: list[SyntaxProblem]) -> list[_Token]:
    out: list[_Token] = []
    i = 0
    while i < len(source):
        found = _TOKEN.match(source, i)
        if found is None:
            end = i + (2 if source[i] in "=&|" else 1)  # these begin operators of two
            problems.append(_unrecognised(source, i, end))
            i = end
            continue
        kind = str(found.lastgroup)
        text = found.group()
        at = i
        i = found.end()
        if kind == "space":
            continue
        if kind == "text":
            try:
                value, i = _string(source, at, text)
            except _BadText as e:
                i = e.end
                problems.append(_unrecognised(source, at, i))
                continue
            out.append(_Token("bytes" if isinstance(value, bytes) else "string", source[at:i], at, value))
        elif kind in ("int", "uint"):
            out.append(_Token(kind, text, at, _integer(text.rstrip("uU"))))
        elif kind == "float":
            out.append(_Token(kind, text, at, float(text)))
        elif kind == "quoted":
            out.append(_Token(kind, text, at, text[1:-1]))
        else:
            out.append(_Token(kind, text, at))
    out.append(_Token("end", "<EOF>", len(source)))
    return out


def _integer(text: str) -> int:
    """Return the value of digits; for very many, only that it is too large."""
    digits = text.removeprefix("0x").lstrip("0") or "0"
    return int(digits[:_LONGEST], 16 if text.startswith("0x") else 10)


class _BadText(Exception):
    """A text is unterminated or has an invalid escape: it was read up to `end`."""

    def __init__(self, end: int) -> None:
        super().__init__()
        self.end = end


_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}


_CODE: Final = re.compile(
    "(?:[xX]{0}{{2}}|u{0}{{4}}|U{0}{{8}}|(?P<octal>[0-3][0-7]{{2}}))"
    "|(?P<bad>[xX]{0}{{0,1}}.?|u{0}{{0,3}}.?|U{0}{{0,7}}.?|[0-3][0-7]?.?|.?)".format("[0-9a-fA-F]"),
    re.DOTALL,
)
"""The pattern of a character code after a backslash; or the invalid part of one."""


def _string(source: str, at: int, opening: str) -> tuple[str | bytes, int]:
    prefix = opening.rstrip("\"'").lower()
    quote = opening[len(prefix) :]
    raw, binary = "r" in prefix, "b" in prefix
    i = at + len(opening)
    out: list[str] = []
    data = bytearray()

    def emit(text: str) -> None:
        if binary:
            data.extend(text.encode())
        else:
            out.append(text)

    while True:
        if i >= len(source):
            raise _BadText(i)
        if source.startswith(quote, i):
            return (bytes(data) if binary else "".join(out)), i + len(quote)
        c = source[i]
        if len(quote) == 1 and c in "\r\n":
            raise _BadText(i + 1)
        if c != "\\" or raw:
            emit(c)
            i += 1
            continue
        d = source[i + 1 : i + 2]
        if d in _SIMPLE:
            emit(_SIMPLE[d])
            i += 2
            continue
        found = _CODE.match(source, i + 1)
        assert found is not None  # it takes anything
        if found["bad"] is not None:
            raise _BadText(found.end())
        code = int(found["octal"], 8) if found["octal"] else int(found[0][1:], 16)
        if binary and d not in "uU":
            data.append(code)
        elif binary:
            raise SyntaxProblem("unable to unescape string", at)
        elif code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise SyntaxProblem("invalid unicode code point", at)
        else:
            emit(chr(code))
        i = found.end()


_PRIMARY: Final = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_ARGUMENT: Final = _PRIMARY.replace("'(', ", "'(', ')', ")
_INDEX: Final = _PRIMARY.replace("'!', ", "'!', '?', ")
_RELATIONS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in"})


class _Parser:
    def __init__(self, source: str) -> None:
        self.problems: list[SyntaxProblem] = []
        self.tokens = _tokens(source, self.problems)
        self.wanted: dict[int, str] = {}  # what a token may be, other than the start of an expression
        self.i = 0
        self.depth = 0

    def parse(self) -> Node:
        try:
            node = self.expression()
            token = self.peek()
            if token.kind != "end":
                raise SyntaxProblem(f"Syntax error: extraneous input '{token.text}' expecting <EOF>", token.at)
        except SyntaxProblem as e:
            self.problems.append(e)
        if self.problems:
            *earlier, last = sorted(self.problems, key=lambda p: p.offset)
            last.earlier = earlier
            raise last
        return node

    def peek(self) -> _Token:
        return self.tokens[self.i]

    def next(self) -> _Token:
        token = self.tokens[self.i]
        self.i += 1
        return token

    def accept(self, text: str) -> _Token | None:
        token = self.tokens[self.i]
        if token.kind == "op" and token.text == text:
            self.i += 1
            return token
        return None

    def expect(self, text: str) -> None:
        if self.accept(text) is None:
            raise self.unexpected(f"'{text}'")

    def close(self, text: str, wanted: str) -> None:
        """Parse a closing token: at the end of the source it is missing, without further errors."""
        if self.accept(text) is None:
            if self.peek().kind == "end" and text == ")":
                raise SyntaxProblem("Syntax error: missing ')' at '<EOF>'", self.peek().at)
            raise self.unexpected(wanted)

    def unexpected(self, wanted: str) -> SyntaxProblem:
        token = self.peek()
        return SyntaxProblem(f"Syntax error: mismatched input '{token.text}' expecting {wanted}", token.at)

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SyntaxProblem("expression recursion limit exceeded: 100", self.peek().at)
        try:
            condition = self.either()
            mark = self.accept("?")
            if mark is None:
                return condition
            yes = self.either()
            self.expect(":")
            return Node("?:", mark.at, (condition, yes, self.expression()))
        finally:
            self.depth -= 1

    def either(self) -> Node:
        node = self.both()
        while mark := self.accept("||"):
            node = Node("||", mark.at, (node, self.both()))
        return node

    def both(self) -> Node:
        node = self.relation()
        while mark := self.accept("&&"):
            node = Node("&&", mark.at, (node, self.relation()))
        return node

    def relation(self) -> Node:
        node = self.sum()
        while True:
            token = self.peek()
            if token.text not in _RELATIONS or token.kind not in ("op", "name"):
                return node
            self.i += 1
            node = Node(token.text, token.at, (node, self.sum()))

    def sum(self) -> Node:
        node = self.product()
        while mark := self.accept("+") or self.accept("-"):
            node = Node(mark.text, mark.at, (node, self.product()))
        return node

    def product(self) -> Node:
        node = self.unary()
        while mark := self.accept("*") or self.accept("/") or self.accept("%"):
            node = Node(mark.text, mark.at, (node, self.unary()))
        return node

    def unary(self) -> Node:
        if mark := self.accept("!"):
            count = 1
            while self.accept("!"):
                count += 1
            inner = self.member()
            return inner if count % 2 == 0 else Node("!", mark.at, (inner,))
        if mark := self.accept("-"):
            count = 1
            while self.accept("-"):
                count += 1
            token = self.peek()
            if count % 2 and token.kind in ("int", "float") and not self._followed(token):
                self.i += 1
                return Node("const", mark.at, value=-token.value)
            inner = self.member()
            return inner if count % 2 == 0 else Node("neg", mark.at, (inner,))
        return self.member()

    def _followed(self, token: _Token) -> bool:
        following = self.tokens[self.i + 1]
        return following.kind == "op" and following.text in (".", "[")

    def member(self) -> Node:
        node = self.primary()
        steps = 0
        while True:
            steps += 1
            if steps > 1000:
                raise SyntaxProblem("expression recursion limit exceeded", self.peek().at)
            if dot := self.accept("."):
                optional = self.accept("?") is not None
                token = self.next()
                if token.kind == "quoted":
                    node = Node("select?" if optional else "select", dot.at, (node,), token.value)
                    continue
                if token.kind != "name":
                    raise SyntaxProblem(f"Syntax error: no viable alternative at input '.{token.text}'", token.at)
                if not optional and (paren := self.accept("(")):
                    node = Node("method", paren.at, (node, *self.arguments(")")), token.text)
                else:
                    node = Node("select?" if optional else "select", dot.at, (node,), token.text)
            elif bracket := self.accept("["):
                optional = self.accept("?") is not None
                if not optional:
                    self.wanted[self.i] = _INDEX
                index = self.expression()
                self.expect("]")
                node = Node("index?" if optional else "index", bracket.at, (node, index))
            elif (name := _dotted(node)) and (brace := self.accept("{")):
                node = self.message_literal(brace, name)
            else:
                return node

    def arguments(self, closing: str) -> list[Node]:
        out: list[Node] = []
        if self.accept(closing):
            return out
        self.wanted[self.i] = _ARGUMENT
        while True:
            out.append(self.expression())
            if not self.accept(","):
                self.close(closing, f"{{'{closing}', ','}}")
                return out

    def primary(self) -> Node:
        token = self.next()
        match token.kind:
            case "int":
                return Node("const", token.at, value=token.value)
            case "uint":
                return Node("uint", token.at, value=token.value)
            case "float" | "string" | "bytes":
                return Node("const", token.at, value=token.value)
            case "name":
                return self.name(token)
        if token.kind == "op":
            if token.text == "(":
                node = self.expression()
                self.close(")", "')'")
                return node
            if token.text == "[":
                return self.list_literal(token)
            if token.text == "{":
                return self.map_literal(token)
            if token.text == ".":
                return self.name(self.next())
        self.i -= 1
        return self.instead_of_an_expression()

    def instead_of_an_expression(self) -> Node:
        """Handle a missing expression: skip one surplus token, as ANTLR does; raises SyntaxProblem for anything else."""
        token, wanted = self.peek(), self.wanted.get(self.i, _PRIMARY)
        following = self.tokens[min(self.i + 1, len(self.tokens) - 1)]
        if token.kind == "end" or not _begins(following):
            raise self.unexpected(wanted)
        self.problems.append(SyntaxProblem(f"Syntax error: extraneous input '{token.text}' expecting {wanted}", token.at))
        self.i += 1
        return self.unary()

    def name(self, token: _Token) -> Node:
        constants = {"true": True, "false": False, "null": None}
        if token.text in constants:
            return Node("const", token.at, value=constants[token.text])
        if token.text in RESERVED:
            raise SyntaxProblem(f"reserved identifier: {token.text}", token.at)
        if token.text == "in" or token.kind != "name":
            self.i -= 1
            return self.instead_of_an_expression()
        if paren := self.accept("("):
            return Node("call", paren.at, tuple(self.arguments(")")), token.text)
        return Node("ident", token.at, value=token.text)

    def list_literal(self, token: _Token) -> Node:
        items: list[Node] = []
        optional: list[bool] = []
        while not self.accept("]"):
            optional.append(self.accept("?") is not None)
            items.append(self.expression())
            if not self.accept(","):
                self.close("]", "{']', ','}")
                break
        return Node("list", token.at, tuple(items), tuple(optional))

    def message_literal(self, token: _Token, name: str) -> Node:
        values: list[Node] = []
        fields: list[tuple[str, bool]] = []
        while not self.accept("}"):
            optional = self.accept("?") is not None
            field = self.next()
            if field.kind not in {"name", "quoted"}:
                raise SyntaxProblem("Syntax error: a field of a message has a name", field.at)
            self.expect(":")
            fields.append((field.value or field.text, optional))
            values.append(self.expression())
            if not self.accept(","):
                self.close("}", "{'}', ','}")
                break
        return Node("message", token.at, tuple(values), (name, tuple(fields)))

    def map_literal(self, token: _Token) -> Node:
        entries: list[Node] = []
        optional: list[bool] = []
        while not self.accept("}"):
            optional.append(self.accept("?") is not None)
            key = self.expression()
            self.expect(":")
            entries.extend((key, self.expression()))
            if not self.accept(","):
                self.close("}", "{'}', ','}")
                break
        return Node("map", token.at, tuple(entries), tuple(optional))


def _begins(token: _Token) -> bool:
    """Return whether an expression may begin with the token."""
    return (token.kind not in ("op", "end", "quoted") and token.text != "in") or (token.kind == "op" and token.text in "[{(.-!")


def _dotted(node: Node) -> str:
    """Return the name `a.b.c` of a node, if it is one."""
    if node.op == "ident":
        return str(node.value)
    if node.op == "select":
        owner = _dotted(node.args[0])
        return f"{owner}.{node.value}" if owner else ""
    return ""
