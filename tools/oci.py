"""An OCI image layout, written without a daemon: layers as reproducible archives, a configuration, a manifest, an index.

The same files give the same digests on every machine and at any time: entries are sorted, belong to nobody, are as old as
the epoch, and may be read by everybody.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, cast

from clusterwright.api.meta import Json

INDEX: Final = "application/vnd.oci.image.index.v1+json"
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
CONFIG: Final = "application/vnd.oci.image.config.v1+json"
LAYER: Final = "application/vnd.oci.image.layer.v1.tar+gzip"
_EPOCH: Final = "1970-01-01T00:00:00Z"
_DOCKER: Final = {
    "application/vnd.docker.distribution.manifest.v2+json": MANIFEST,
    "application/vnd.docker.distribution.manifest.list.v2+json": INDEX,
    "application/vnd.docker.container.image.v1+json": CONFIG,
    "application/vnd.docker.image.rootfs.diff.tar.gzip": LAYER,
}
"""Other media types of the same things; a base may have been copied from a registry that uses them."""


class NotALayout(Exception):
    """The folder holds no image that can be built on."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a layer: a file with content or a source, a link with a target, else a folder. `path` is without a leading slash."""

    path: str
    source: Path | None = None
    content: bytes | None = None
    target: str = ""
    mode: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer that is written: its descriptor, and the digest of what it unpacks to."""

    descriptor: Json
    diff_id: str
    says: str = ""
    """For the history."""


@dataclass(frozen=True, slots=True)
class Image:
    """The parts of an image."""

    architecture: str
    os: str = "linux"
    config: Mapping[str, Any] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    history: tuple[Json, ...] = ()


class Layout:
    """A folder with an image layout that is being written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._blobs = folder / "blobs" / "sha256"
        self._blobs.mkdir(parents=True, exist_ok=True)
        (folder / "oci-layout").write_text(json.dumps({"imageLayoutVersion": "1.0.0"}))

    def add_layer(self, entries: Iterable[Entry], says: str) -> Layer:
        """Write a layer of these entries and the folders above them; of entries with one path the last counts."""
        by_path = {entry.path: entry for entry in entries}
        for path in list(by_path):
            for parent in PurePosixPath(path).parents:
                if str(parent) != ".":
                    by_path.setdefault(str(parent), Entry(str(parent)))
        unfinished = self._blobs / "unfinished"
        with unfinished.open("wb") as out:
            packed = _Hashing(out)
            # neither a name nor a time in the header, and always the same level
            with gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=cast(BinaryIO, packed), mtime=0) as unpacked:
                inner = _Hashing(unpacked)
                with tarfile.open(fileobj=cast(BinaryIO, inner), mode="w", format=tarfile.PAX_FORMAT) as archive:
                    for path in sorted(by_path):
                        _add(archive, by_path[path])
        unfinished.rename(self._blobs / packed.hash.hexdigest())
        descriptor = {"mediaType": LAYER, "digest": f"sha256:{packed.hash.hexdigest()}", "size": packed.size}
        return Layer(descriptor, f"sha256:{inner.hash.hexdigest()}", says)

    def base(self, folder: Path, architecture: str) -> Image:
        """Return the image of another layout, for one architecture, with its layers copied; raises NotALayout."""
        try:
            index = json.loads((folder / "index.json").read_bytes())
            manifest = _manifest_for(folder, index, architecture)
            config = json.loads(_blob(folder, manifest["config"]))
            layers = []
            for descriptor, diff_id in zip(manifest["layers"], config["rootfs"]["diff_ids"], strict=True):
                media_type = _DOCKER.get(descriptor["mediaType"], descriptor["mediaType"])
                self._copy(folder, descriptor["digest"])
                layers.append(Layer({**descriptor, "mediaType": media_type}, diff_id))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise NotALayout(f"{folder}: {error}") from error
        return Image(config["architecture"], config["os"], config.get("config") or {}, tuple(layers), tuple(config.get("history") or ()))

    def finish(self, image: Image, name: str) -> str:
        """Write configuration, manifest and index, and nothing else is left there; the manifest's digest."""
        added = [{"created": _EPOCH, "created_by": layer.says} for layer in image.layers if layer.says]
        config = {
            "architecture": image.architecture,
            "os": image.os,
            "created": _EPOCH,
            "config": dict(image.config),
            "rootfs": {"type": "layers", "diff_ids": [layer.diff_id for layer in image.layers]},
            "history": [*image.history, *added],
        }
        manifest: Json = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._write(CONFIG, config),
            "layers": [layer.descriptor for layer in image.layers],
        }
        described = {
            **self._write(MANIFEST, manifest),
            "platform": {"architecture": image.architecture, "os": image.os},
            "annotations": {"org.opencontainers.image.ref.name": name},
        }
        named = {
            str(d["digest"]).removeprefix("sha256:") for d in (described, manifest["config"], *(layer.descriptor for layer in image.layers))
        }
        for blob in self._blobs.iterdir():  # of an image that was here before
            if blob.name not in named:
                blob.unlink()
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [described]}
        (self.folder / "index.json").write_bytes(_encoded(index))
        return str(described["digest"])

    def _write(self, media_type: str, value: Json) -> Json:
        data = _encoded(value)
        digest = hashlib.sha256(data).hexdigest()
        (self._blobs / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def _copy(self, folder: Path, digest: str) -> None:
        source = _blob_path(folder, digest)
        with source.open("rb") as data:
            if f"sha256:{hashlib.file_digest(data, 'sha256').hexdigest()}" != digest:
                raise ValueError(f"blob {digest} is damaged")
        shutil.copyfile(source, self._blobs / source.name)


def _manifest_for(folder: Path, index: Json, architecture: str) -> Json:
    for platform, manifest in _manifests(folder, index):
        if (platform["os"], platform["architecture"]) == ("linux", architecture):
            return manifest
    raise ValueError(f"no image for linux on {architecture}")


def _manifests(folder: Path, index: Json) -> Iterator[tuple[Json, Json]]:
    """Platforms and manifests, with those of inner indexes."""
    for descriptor in index["manifests"]:
        kind = _DOCKER.get(descriptor["mediaType"], descriptor["mediaType"])
        if kind not in {INDEX, MANIFEST}:
            continue
        found = json.loads(_blob(folder, descriptor))
        if kind == INDEX:
            yield from _manifests(folder, found)
        else:
            yield descriptor.get("platform") or json.loads(_blob(folder, found["config"])), found


def _blob_path(folder: Path, digest: str) -> Path:
    algorithm, _, value = digest.partition(":")
    if algorithm != "sha256" or len(value) != 64 or not value.isalnum():
        raise ValueError(f"digest {digest!r}")
    return folder / "blobs" / algorithm / value


def _blob(folder: Path, descriptor: Json) -> bytes:
    data = _blob_path(folder, descriptor["digest"]).read_bytes()
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != descriptor["digest"]:
        raise ValueError(f"blob {descriptor['digest']} is damaged")
    return data


def _encoded(value: Json) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode()


def _add(archive: tarfile.TarFile, entry: Entry) -> None:
    info = tarfile.TarInfo(entry.path)
    info.mtime, info.uid, info.gid = 0, 0, 0
    if entry.target:
        info.type, info.linkname, info.mode = tarfile.SYMTYPE, entry.target, 0o777
        archive.addfile(info)
    elif entry.source is not None:
        status = entry.source.stat()
        info.size = status.st_size
        info.mode = entry.mode or (0o755 if status.st_mode & 0o111 else 0o644)
        with entry.source.open("rb") as data:
            archive.addfile(info, data)
    elif entry.content is not None:
        info.size, info.mode = len(entry.content), entry.mode or 0o644
        archive.addfile(info, io.BytesIO(entry.content))
    else:
        info.type, info.mode = tarfile.DIRTYPE, entry.mode or 0o755
        archive.addfile(info)


class _Hashing:
    """A file that is written through, and what it came to."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        self.size += len(data)
        self._inner.write(data)
        return len(data)

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self._inner.flush()
