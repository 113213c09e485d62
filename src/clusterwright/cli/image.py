"""`python -m clusterwright.cli.image --output DIR [--base DIR]`: the manager's image as an OCI layout, without a daemon, a network or root.

skopeo copy docker://python:3.11-slim oci:base && python -m clusterwright.cli.image --base base --output image
skopeo copy oci:image docker://REGISTRY/clusterwright:TAG
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from clusterwright.install import image
from clusterwright.install.oci import NotALayout


def main(words: Sequence[str] | None = None) -> int:
    """Write the layout and print its digest; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m clusterwright.cli.image", description="The manager's image as an OCI layout.")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="the layout is written there")
    parser.add_argument("--base", type=Path, metavar="DIR", help="an OCI layout with Python; default: this interpreter and its libraries")
    arguments = parser.parse_args(words)
    try:
        print(image.build(arguments.output, arguments.base))
    except NotALayout as error:
        print(f"{parser.prog}: --base {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
