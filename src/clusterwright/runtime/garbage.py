"""How Python's collector of cycles is set in a process that holds many objects for long."""

from __future__ import annotations

import gc
from typing import Final

_YOUNG: Final = 50_000
"""Objects that are made before the collector looks at the young ones. A pass makes thousands and leaves hardly a cycle: at Python's
700 a tenth of all time goes into looking, and more the more objects there are."""


def settle() -> None:
    """What is there now stays: looking through it for garbage would make everybody wait. What comes is looked through less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 20, 100)
