"""Image references, and the containers that run them. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from clusterwright.api.meta import Json, Unstructured

_HUB = "docker.io"
_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:[A-Za-z0-9.-]+(?::[0-9]+)?/)?{_PATH}(?:/{_PATH})*)(?::(?P<tag>[\w][\w.-]{{0,127}}))?(?:@(?P<digest>[^@]+))?"
)


@dataclass(frozen=True, slots=True)
class Image:
    """An image reference: everything before the last slash, the last part, the tag."""

    repository: str
    name: str
    tag: str = ""
    digest: str = ""

    @staticmethod
    def parse(text: str) -> Image:
        """Parse a reference; raises ValueError."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            raise ValueError(f"couldn't parse image name: {text!r} is not a reference")
        repository, _, name = match["name"].rpartition("/")
        return Image(repository, name, match["tag"] or "", match["digest"] or "")

    def __str__(self) -> str:
        head = f"{self.repository}/{self.name}" if self.repository else self.name
        return f"{head}:{self.tag}" if self.tag else head


def canonical(name: str) -> str:
    """Return a repository with its registry: Docker Hub by default, with the path `library` if there is none."""
    registry, slash, path = name.partition("/")
    if not slash or (registry != "localhost" and not re.search(r"[.:A-Z]", registry)):
        registry, path = _HUB, name
    if registry in {_HUB, f"index.{_HUB}"}:
        return f"{_HUB}/{path}" if "/" in path else f"{_HUB}/library/{path}"
    return f"{registry}/{path}"


def familiar(name: str) -> str:
    """Return a repository in its short form, without the Docker Hub prefix."""
    if not name.startswith(f"{_HUB}/"):
        return name
    path = name.removeprefix(f"{_HUB}/")
    short = path.removeprefix("library/")
    return short if "/" not in short else path


def tag_for(version: str) -> str:
    """Return a version as an image tag: characters that tags may not contain become underscores."""
    return re.sub(r"[^-a-zA-Z0-9_.]", "_", version)


def containers_of(workload: Unstructured) -> list[Json]:
    """Return the containers of a Deployment or DaemonSet, with unknown fields; change them and send them back."""
    return [dict(c) for c in workload.at("spec", "template", "spec", "containers") or ()]
