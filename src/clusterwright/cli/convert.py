"""`clusterwright convert`: print manifests in another version of our groups."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from clusterwright.api.crds import crds
from clusterwright.api.meta import Json
from clusterwright.api.versions import HUB, definitions, spokes
from clusterwright.api.yamlreader import load_all
from clusterwright.api.yamlwriter import dump_all
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.files import read_text
from clusterwright.conversion.convert import ConversionFailed, Versions, convert, convertible, versions_from_crds

_LIST: Final = "List"


def run(options: argparse.Namespace) -> int:
    """Print all documents of a file, those of our groups in the wanted version, the others as they are. Raises Failed, Usage, OSError."""
    known = _known_versions()
    if options.to_version not in known:
        raise Usage(f"--to-version {options.to_version}: expected one of {', '.join(known)}")
    try:
        documents = [d for d in load_all(read_text(options.file), trusted=True) if d is not None]
    except yaml.YAMLError as error:
        raise Failed(f"{options.file}: it is not valid YAML: {' '.join(str(error).split())}") from None
    text = dump_all(converted(documents, options.to_version), width=120)
    if options.output_file == "-":
        sys.stdout.write(text)
    else:
        Path(options.output_file).write_text(text)
    for name in _classes_with_patches(documents):
        print(
            f"clusterwright convert: the patches of ClusterClass {name} are as they were: check versions and paths in them", file=sys.stderr
        )
    return 0


def converted(documents: Iterable[Any], version: str) -> list[Any]:
    """Return documents, also those in Lists, in a version. Raises Failed, which names the document."""
    documents = list(documents)
    flat = [item for document in documents for item in _items(document)]
    versions = _versions(flat)
    return [_converted(document, version, versions, f"document {n}") for n, document in enumerate(documents, 1)]


def _converted(document: Any, version: str, versions: Versions, where: str) -> Any:
    if not isinstance(document, dict):
        return document
    group, _, present = str(document.get("apiVersion", "")).rpartition("/")
    kind = str(document.get("kind", ""))
    if kind.endswith(_LIST) and isinstance(document.get("items"), list):
        items = [_converted(item, version, versions, f"{where}, item {n}") for n, item in enumerate(document["items"], 1)]
        typed = {"apiVersion": f"{group}/{version}"} if convertible(group, kind.removesuffix(_LIST)) else {}
        return {**document, **typed, "items": items}
    if present == version or not convertible(group, kind):
        return document
    try:
        return convert(document, f"{group}/{version}", versions)
    except ConversionFailed as error:
        raise Failed(f"{where}: {error}") from None


def _items(document: Any) -> Iterator[Json]:
    if isinstance(document, dict):
        items = document.get("items")
        if str(document.get("kind", "")).endswith(_LIST) and isinstance(items, list):
            for item in items:
                yield from _items(item)
        else:
            yield document


def _versions(documents: Iterable[Json]) -> Versions:
    """Return how references get their version: by our CRDs, and by those among the documents, which come first."""
    known: dict[str, Mapping[str, Any]] = {crd["metadata"]["name"]: crd["metadata"] for crd in crds()}
    for document in documents:
        metadata = document.get("metadata")
        if document.get("kind") == "CustomResourceDefinition" and isinstance(metadata, dict):
            known[str(metadata.get("name"))] = metadata
    return versions_from_crds(known.get)


def _known_versions() -> list[str]:
    """Return the hub, then all old versions that some kind has."""
    return [HUB, *sorted({version for crd in definitions() for version in spokes(crd)}, reverse=True)]


def _classes_with_patches(documents: Iterable[Any]) -> Iterator[str]:
    for document in documents:
        for item in _items(document):
            spec = item.get("spec")
            if item.get("kind") == "ClusterClass" and isinstance(spec, dict) and spec.get("patches"):
                yield str((item.get("metadata") or {}).get("name", ""))
