"""Attacks whose defence is not built yet, with the finding that asks for it. Whoever builds one removes its line."""

from __future__ import annotations

from typing import Final

PENDING: Final = {
    "role-bomb-tenant": "C2",
    "role-bomb-tenant-wide": "C2",
    "foreground-400": "H1",
    "foreground-2000": "H1",
    "template-uniq": "H2",
    "template-case": "H2",
}
