from __future__ import annotations

from typing import Any

import pytest

from support import kubeadmconfig


@pytest.fixture
async def world() -> Any:
    """A management and a workload cluster with a reconciler between them."""
    return await kubeadmconfig.a_world()


@pytest.fixture
def new_world() -> Any:
    """Makes a world with options."""
    return kubeadmconfig.a_world
