"""The versions of our kinds without models, as data: the schemas of old versions, and the presence class of each field.

One file per API group: CRD name to scope, names, labels and versions. Two keys of a schema are ours and no part of it:
`x-ser` is the presence class of a field (`P`, `V`, `Z`, `A`, as in `api/meta.py`), `x-type` what a string or a field
without a type is (`duration`, `time`, `quantity`, `int-or-string`, `any`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from clusterwright.api.meta import Json

HUB: Final = "v1beta2"
"""The stored version, which all others are converted to and from."""
_OURS: Final = frozenset({"x-ser", "x-type"})


@cache
def definitions() -> Mapping[str, Json]:
    """Return the data of each CRD by its name; the caller must not change them."""
    found: Json = {}
    for file in sorted(files(__package__).iterdir(), key=lambda file: file.name):
        if file.name.endswith(".json"):
            found.update(msgspec.json.decode(file.read_bytes()))
    return found


def spokes(crd_name: str) -> tuple[str, ...]:
    """Return the versions of a CRD other than the hub, oldest first."""
    return tuple(sorted(set(definitions().get(crd_name, {}).get("versions", ())) - {HUB}))


def plain_schema(schema: Any) -> Any:
    """Return a copy of a schema without our own keys."""
    if isinstance(schema, dict):
        return {key: plain_schema(value) for key, value in schema.items() if key not in _OURS}
    return [plain_schema(item) for item in schema] if isinstance(schema, list) else schema
