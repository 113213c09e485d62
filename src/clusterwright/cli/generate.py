"""`clusterwright generate cluster NAME`: print manifests from a template with `${VARIABLES}`."""

from __future__ import annotations

import argparse
import os
import sys

import yaml

from clusterwright.cli import subjects
from clusterwright.cli.create import FLAVORS, as_yaml
from clusterwright.cli.errors import Failed, Usage
from clusterwright.cli.files import read_text
from clusterwright.golang import envsubst
from clusterwright.simulation.defaults import KUBERNETES_VERSION


def run(arguments: argparse.Namespace) -> int:
    """Print the manifests, or the variables. Return 1 if a value is missing or the template is invalid."""
    source = arguments.source or f"flavor {arguments.flavor}"
    try:
        template = envsubst.parse(_text(arguments))
    except envsubst.BadTemplate as error:
        raise Failed(f"{source}: {error}") from None
    variables = envsubst.variables(template)
    if arguments.list_variables:
        _tell(variables)
        return 0
    values = _values(arguments)
    missing = sorted(name for name, default in variables.items() if not default and name not in values)
    if missing:
        raise Failed(f"{source}: no value for {', '.join(missing)}: set it with --set NAME=VALUE, a flag or the environment")
    text = envsubst.substitute(template, values)
    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        raise Failed(f"{source}: with these values, the result is not YAML: {' '.join(str(error).split())}") from None
    sys.stdout.write(text)
    return 0


def _text(arguments: argparse.Namespace) -> str:
    if arguments.source:
        return read_text(arguments.source)
    options = argparse.Namespace(
        name="${CLUSTER_NAME}",
        choice=None,
        kubernetes_version=f"${{KUBERNETES_VERSION:={KUBERNETES_VERSION}}}",
        control_plane_machines="${CONTROL_PLANE_MACHINE_COUNT:=1}",
        worker_machines="${WORKER_MACHINE_COUNT:=1}",
    )
    return as_yaml(FLAVORS[arguments.flavor](options, "${NAMESPACE:=default}"))


def _values(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the values of the variables: from flags, from --set, from the environment."""
    values = dict(os.environ)
    for item in arguments.set:
        name, is_assigned, value = item.partition("=")
        if not name or not is_assigned:
            raise Usage(f"--set {item}: NAME=VALUE is expected")
        values[name] = value
    if arguments.words:
        subject = subjects.parse_cluster(arguments.words)
        values["CLUSTER_NAME"] = subject.name
        arguments.namespace = subject.namespace or arguments.namespace
    flags = {
        "NAMESPACE": arguments.namespace,
        "KUBERNETES_VERSION": arguments.kubernetes_version,
        "CONTROL_PLANE_MACHINE_COUNT": arguments.control_plane_machine_count,
        "WORKER_MACHINE_COUNT": arguments.worker_machine_count,
    }
    values |= {name: str(value) for name, value in flags.items() if value not in {None, ""}}
    values.setdefault("NAMESPACE", "default")
    return values


def _tell(variables: dict[str, str]) -> None:
    required = sorted(name for name, default in variables.items() if not default)
    optional = sorted((name, default) for name, default in variables.items() if default)
    if required:
        print("Required Variables:", *(f"  - {name}" for name in required), sep="\n")
    if required and optional:
        print()
    if optional:
        width = max(len(name) for name, _ in optional)
        print("Optional Variables:", *(f"  - {name:<{width}}  (defaults to {default})" for name, default in optional), sep="\n")
