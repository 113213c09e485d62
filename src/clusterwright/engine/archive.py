"""Create the tar archive of files that an engine unpacks in a container. Pure."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping


def archive(files: Mapping[str, bytes], *, mode: int = 0o600) -> bytes:
    """Return a tar archive of files by path, owned by root, with the folders above them."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        folders: set[str] = set()
        for path in files:
            parts = path.strip("/").split("/")[:-1]
            folders.update("/".join(parts[: i + 1]) for i in range(len(parts)))
        for folder in sorted(folders):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for path, content in files.items():
            entry = tarfile.TarInfo(path.strip("/"))
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
        end = tar.offset + 2 * tarfile.BLOCKSIZE
    return buffer.getvalue()[:end]  # without padding: Podman stops to read at the end, and takes what follows for an error
