"""An operator of kopf on a whole management plane: the fixture `plane` comes with Clusterwright."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from clusterwright.testing import samples

OPERATOR = Path(__file__).with_name("kopf_operator.py")


@pytest.fixture
def operator(plane):
    command = [sys.executable, "-m", "kopf", "run", str(OPERATOR), "--all-namespaces", "--standalone"]
    process = subprocess.Popen(command, env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)})
    yield process
    process.terminate()
    process.wait(20)


def test_the_number_of_replicas_becomes_a_label(plane, operator):
    plane.apply(*samples.cluster("c", has_control_plane_object=True), *samples.control_plane("c", replicas=1))
    plane.apply(*samples.workers("c", "c-md-0", replicas=2))

    deadline = time.monotonic() + 60
    labels = {}
    while labels.get("example.com/replicas") != "2":
        assert time.monotonic() < deadline, labels
        time.sleep(0.2)
        labels = plane.get("cluster.x-k8s.io/v1beta2", "MachineDeployment", "c-md-0")["metadata"].get("labels", {})
    plane.until_available("c", control_plane=1, workers=2)
