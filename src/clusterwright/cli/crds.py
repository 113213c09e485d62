"""`clusterwright crds`: print the CustomResourceDefinitions."""

from __future__ import annotations

import argparse
import sys

import msgspec

from clusterwright.api.crds import crds
from clusterwright.api.yamlwriter import dump_all
from clusterwright.runtimesdk import openapi


def run(arguments: argparse.Namespace) -> int:
    """Print the definitions of all our kinds, or of those named, as YAML documents or as one JSON List; 0 on success, 2 on misuse.

    With `--runtime-hooks`, the OpenAPI document of the runtime hooks instead.
    """
    if arguments.runtime_hooks:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(openapi.document())).decode() + "\n")
        return 0
    selected = crds()
    if arguments.kinds:
        by_name = {}
        for crd in selected:
            names = crd["spec"]["names"]
            for name in (names["kind"], names["plural"], names["singular"], crd["metadata"]["name"], *names.get("shortNames", ())):
                by_name[name.lower()] = crd
        unknown = [name for name in arguments.kinds if name.lower() not in by_name]
        if unknown:
            print(f"clusterwright crds: no such kind: {', '.join(unknown)}", file=sys.stderr)
            return 2
        selected = [by_name[name.lower()] for name in dict.fromkeys(arguments.kinds)]
    if arguments.output == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": selected})).decode() + "\n")
    else:
        sys.stdout.write(dump_all(selected, width=120))
    return 0
