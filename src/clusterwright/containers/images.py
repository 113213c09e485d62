"""Copy images from the engine into the containerd of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from clusterwright.engine import Engine, EngineError

IMPORT = ("ctr", "--namespace", "k8s.io", "images", "import", "--digests", "-")
IMPORT_SECONDS = 600.0


class NotLoaded(Exception):
    """An image could not be loaded into a node; the text says why."""


async def load(engine: Engine, images: Sequence[str], nodes: Sequence[str]) -> None:
    """Load images of the engine into nodes, which are running containers; raises NotLoaded, EngineError."""
    for image in images:
        if not await engine.has_image(image):
            raise NotLoaded(f"the container engine has no image {image}: pull or build it there first")
    with TemporaryDirectory(prefix="clusterwright-") as folder:
        archive = Path(folder) / "image.tar"
        for image in images:
            await engine.save(image, archive)
            for node in nodes:
                await _import(engine, image, archive, node)


async def _import(engine: Engine, image: str, archive: Path, node: str) -> None:
    try:
        done = await engine.run(node, IMPORT, input=archive, timeout=IMPORT_SECONDS)
    except EngineError as error:
        raise NotLoaded(f"{image} into {node}: {error}") from error
    if done.code:
        said = " ".join(done.text.split())[-300:]
        raise NotLoaded(f"{image} cannot be imported into {node}: {said or f'ctr ended with code {done.code}'}")
