"""`clusterwright install`: print, write or apply everything that a cluster needs to run us."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from clusterwright import __version__, app
from clusterwright.api.meta import GroupVersionKind, Json, ObjectKey
from clusterwright.api.yamlwriter import dump_all
from clusterwright.cli import connect, running
from clusterwright.install import forms
from clusterwright.install.manifests import Settings, manifests
from clusterwright.runtime.errors import ApiError
from clusterwright.runtime.kubeconfig import Connection
from clusterwright.runtime.rest import RestClient

FIELD_MANAGER = "clusterwright-install"


def run(arguments: argparse.Namespace) -> int:
    """Print the manifests, write them into a folder, or apply them; the exit status."""
    parser: argparse.ArgumentParser = arguments.parser
    settings = Settings(
        namespace=arguments.target_namespace,
        image=arguments.image,
        replicas=arguments.replicas,
        shard=arguments.shard,
        watch_namespace=arguments.watch_namespace,
        controllers=arguments.controllers,
        arguments=tuple(arguments.argument),
        webhooks=not arguments.no_webhooks,
    )
    try:
        selected = running.select(settings.controllers, app.selectable_names())
    except ValueError as error:
        parser.error(f"--controllers {settings.controllers}: {error}")
    if arguments.apply and (arguments.form != "yaml" or arguments.output_dir):
        parser.error("--apply cannot be combined with --form or --output-dir")
    if arguments.form != "yaml" and not arguments.output_dir:
        parser.error(f"--form {arguments.form} has several files: choose a folder with --output-dir")

    def make(chosen: Settings) -> Sequence[Json]:
        return manifests(chosen, app.declared(selected), migrates=running.names_migrator(chosen.controllers))

    if arguments.apply:
        return asyncio.run(_apply(connect.resolve(arguments), make(settings)))
    match arguments.form:
        case "helm":
            files: Mapping[str, str] = forms.helm(make, settings, __version__)
        case "kustomize":
            files = forms.kustomize(make(settings))
        case _:
            files = {"clusterwright.yaml": dump_all(make(settings))}
    if not arguments.output_dir:
        sys.stdout.write(files["clusterwright.yaml"])
        return 0
    for name, text in files.items():
        path = Path(arguments.output_dir) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    print(f"{len(files)} files in {arguments.output_dir}")
    return 0


async def _apply(connection: Connection, objects: Sequence[Json]) -> int:
    async with connect.connected(connection) as client:
        failed = 0
        for obj in objects:
            name = f"{obj['kind']}/{obj['metadata']['name']}"
            try:
                await (
                    _replace(client, obj)
                    if obj["kind"].endswith("WebhookConfiguration")
                    else client.apply(obj, field_manager=FIELD_MANAGER)
                )
            except ApiError as error:
                failed += 1
                print(f"{name}: {error}", file=sys.stderr)
                continue
            print(name)
    return 1 if failed else 0


async def _replace(client: RestClient, obj: Json) -> None:
    """Replace a webhook configuration, but keep the CA bundles that the manager has written.

    An apply cannot do this: a removed webhook would stay while another manager owns its caBundle, and would be refused as incomplete.
    """
    found = await client.find(GroupVersionKind.of(obj["apiVersion"], obj["kind"]), ObjectKey("", obj["metadata"]["name"]))
    if found is None:
        await client.create(obj, field_manager=FIELD_MANAGER)
        return
    trusted = {hook["name"]: (hook.get("clientConfig") or {}).get("caBundle") for hook in found.at("webhooks") or ()}
    hooks = [
        {**hook, "clientConfig": {**hook["clientConfig"], **({"caBundle": bundle} if (bundle := trusted.get(hook["name"])) else {})}}
        for hook in obj["webhooks"]
    ]
    metadata = {**dict(found.at("metadata") or {}), "labels": {**found.metadata.labels, **obj["metadata"].get("labels", {})}}
    await client.update({**obj, "metadata": metadata, "webhooks": hooks})
