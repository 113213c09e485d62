"""`python -m clusterwright`: the same as the command `clusterwright`."""

from __future__ import annotations

import sys

from clusterwright.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
