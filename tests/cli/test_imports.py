"""What commands import. Time cannot be tested on a machine that others use, too; what takes it can."""

from __future__ import annotations

import subprocess
import sys

from clusterwright.cli.grammar import COMMANDS

_SHOW = "import sys; from clusterwright.cli.main import main; [main(c.split()) for c in {calls!r}]; print(*sorted(sys.modules), file=sys.stderr)"


def imported(*calls: str) -> set[str]:
    done = subprocess.run([sys.executable, "-c", _SHOW.format(calls=calls)], capture_output=True, text=True, timeout=600, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_help_version_and_wrong_calls_need_nothing_that_takes_time() -> None:
    calls = [*(f"{name} --help" for name in COMMANDS), "--help", "version", "get --nope", "completion bash", "complete -- get -"]

    present = imported(*calls)

    assert not present & {"asyncio", "aiohttp", "ssl", "yaml", "msgspec", "cryptography", "clusterwright.api", "clusterwright.runtime"}


def test_get_needs_no_controller_and_no_server(tmp_path: object) -> None:
    present = imported(f"get clusters --kubeconfig {tmp_path}/none")

    assert "clusterwright.cli.get" in present
    heavy = (
        "clusterwright.controllers.kit.registry",
        "clusterwright.controllers.wiring",
        "clusterwright.apiserver",
        "clusterwright.offline",
    )
    assert not {m for m in present if m.startswith(heavy)}
