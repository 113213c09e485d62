"""Write YAML as Kubernetes' tools do: fields in their order, no anchors; with libyaml if PyYAML has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

_WIDTH = 140


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """A dumper that writes no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def dump(document: Any) -> str:
    """Return one document."""
    return str(yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True))


def dump_all(documents: Iterable[Any], *, width: int = _WIDTH) -> str:
    """Return documents, each after its own `---`."""
    return str(yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, explicit_start=True, width=width, allow_unicode=True))
