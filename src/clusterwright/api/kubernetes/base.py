"""What the models of built-in kinds have in common."""

from __future__ import annotations

from typing import ClassVar

from clusterwright.api.meta import Object, Struct


class Builtin(Struct):
    """A part of a built-in kind. Upstream holds nested objects by pointer: {} differs from absent."""

    omit_zero: ClassVar[bool] = False


class SensitiveBuiltin(Builtin):
    """A part that may carry credentials: its content never shows in a repr."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


class SensitiveObject(Object):
    """A kind that carries credentials: only its key shows in a repr."""

    def __repr__(self) -> str:
        return f"{self.kind}({self.key})"
