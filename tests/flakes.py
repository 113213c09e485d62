"""`python tests/flakes.py [RUNS] [PLACES...]`: whether tests that use processes, sockets and real time fail without a fault of the product.

They are run again and again beside as many busy loops as there are cores, so that whatever rests on being quick is found out. Ends with 1 if
a run failed; what failed is told at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = (
    "tests/admission/test_recorded.py",
    "tests/apiserver/test_auth.py",
    "tests/apiserver/test_conformance.py",
    "tests/apiserver/test_conformance_more.py",
    "tests/apiserver/test_conversion.py",
    "tests/apiserver/test_http.py",
    "tests/apiserver/test_kubectl.py",
    "tests/apiserver/test_persistence.py",
    "tests/apiserver/test_port_forward.py",
    "tests/apiserver/test_slices.py",
    "tests/apiserver/test_webhooks.py",
    "tests/cli",
    "tests/containers",
    "tests/dashboard",
    "tests/documentation/test_pages.py",
    "tests/engine",
    "tests/inmemory/test_cloud.py",
    "tests/inmemory/test_port_forward.py",
    "tests/install/test_containerfile.py",
    "tests/install/test_image.py",
    "tests/kubeadm/test_certificates.py",
    "tests/kubeadm/test_cloudinit.py",
    "tests/kubeadm/test_documents.py",
    "tests/kubeadm/test_ignition.py",
    "tests/providers/test_hanging.py",
    "tests/providers/test_skeleton.py",
    "tests/providers/test_supervision.py",
    "tests/runtime/test_http.py",
    "tests/runtime/test_insight.py",
    "tests/runtime/test_lease_thread.py",
    "tests/runtime/test_leases.py",
    "tests/runtime/test_observability.py",
    "tests/runtime/test_turns.py",
    "tests/runtimesdk",
    "tests/scenarios/test_controllers_over_http.py",
    "tests/scenarios/test_lifecycle_over_http.py",
    "tests/scenarios/test_upstream_templates.py",
    "tests/security",
    "tests/simulation/test_sample_controller.py",
    "tests/test_release.py",
    "tests/test_surface.py",
    "tests/testing/test_plugin.py",
    "tests/webhooks",
    "tests/workload",
)
RUNS = 20


@contextmanager
def load() -> Iterator[None]:
    """A busy loop for every core meanwhile."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main(runs: int, places: list[str]) -> int:
    """How many runs failed."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", "-m", "not soak and not real", *places]
    failed = 0
    with load():
        for run in range(1, runs + 1):
            begun = time.monotonic()
            done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode:
                failed += 1
                sys.stdout.write(done.stdout)
            sys.stdout.write(f"run {run} of {runs}: {done.stdout.splitlines()[-1]} ({time.monotonic() - begun:.0f} s)\n")
            sys.stdout.flush()
    return failed


if __name__ == "__main__":
    count, *named = sys.argv[1:] or [str(RUNS)]
    sys.exit(main(int(count), named or list(PLACES)) > 0)
