"""`clusterwright version`: print the version of the program and of the APIs that it serves."""

from __future__ import annotations

import argparse
import json
import platform

from clusterwright import __version__
from clusterwright.simulation.defaults import KUBERNETES_VERSION


def run(arguments: argparse.Namespace) -> int:
    """Print the version; as JSON with its details."""
    if arguments.output == "json":
        facts = {"version": __version__, "contract": "v1beta2", "defaultKubernetesVersion": KUBERNETES_VERSION}
        print(
            json.dumps(
                {**facts, "python": platform.python_version(), "platform": f"{platform.system()}/{platform.machine()}".lower()}, indent=2
            )
        )
    else:
        print(f"clusterwright {__version__}")
    return 0
