"""Settings of Python's cycle collector for a process that holds many objects for long."""

from __future__ import annotations

import gc
from typing import Final

_YOUNG: Final = 50_000
"""How many objects are created before the collector checks the young ones.

A pass creates thousands and leaves hardly a cycle: with Python's 700, a tenth of all time is spent on checks, and more with more objects.
"""


def settle() -> None:
    """Exclude present objects from collection, because checking them would delay everything; check new ones less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 100)
