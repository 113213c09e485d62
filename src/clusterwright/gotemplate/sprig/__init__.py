"""The function library that Cluster API's templates may call, as of sprig 3.3, without clock, network and environment.

Pass `FUNCTIONS` to `gotemplate.parse`. Functions check the types of their arguments as Go does: a number instead of a string is an error.
Functions with random results (`genCA`, `randInt`, ...) always fail: a template with them would change in every pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from clusterwright.gotemplate.sprig import crypto, dicts, lists, numbers, regexes, strings, times, values, versions

FUNCTIONS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        name: function
        for module in (strings, numbers, lists, dicts, values, regexes, times, versions, crypto)
        for name, function in module.LIBRARY.functions.items()
    }
)
"""Every function by its name."""

__all__ = ["FUNCTIONS"]
