"""The function library that Cluster API's templates may call, as of sprig 3.3, without what asks the clock, the network or the environment.

`FUNCTIONS` is to be given to `gotemplate.parse`. Functions check the types of their arguments as Go does: a number where a string is
wanted is an error. What would give another value at each call (`genCA`, `randInt`, ...) is defined and refuses: a template that uses it
would change in every pass.
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
