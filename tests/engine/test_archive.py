"""Archives that engines unpack."""

from __future__ import annotations

import io
import tarfile

from clusterwright.engine.archive import archive


def test_files_and_the_folders_above_them_are_in_it() -> None:
    made = archive({"/a/b/c": b"1" * 600, "d": b""}, mode=0o640)

    with tarfile.open(fileobj=io.BytesIO(made)) as tar:
        assert [(m.name, m.isdir(), m.mode, m.uid) for m in tar] == [
            ("a", True, 0o755, 0), ("a/b", True, 0o755, 0), ("a/b/c", False, 0o640, 0), ("d", False, 0o640, 0),
        ]  # fmt: skip
        assert tar.extractfile("a/b/c").read() == b"1" * 600


def test_nothing_follows_the_end_of_the_archive() -> None:
    made = archive({"x": b"1" * 512})

    assert len(made) == 4 * tarfile.BLOCKSIZE, "a header, a block of content, and the two blocks that end it"
