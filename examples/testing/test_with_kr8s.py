"""Automation with kr8s, against an empty API server and against a workload cluster."""

import kr8s
from kr8s.objects import ConfigMap


def test_an_object_is_written_and_read(api_server):
    api = kr8s.api(kubeconfig=str(api_server.kubeconfig))
    ConfigMap({"metadata": {"name": "settings", "namespace": "default"}, "data": {"colour": "green"}}, api=api).create()

    (found,) = api.get("configmaps", "settings", namespace="default")

    assert found.data.colour == "green"


def test_the_nodes_of_a_workload_cluster_are_ready(workload_cluster):
    api = kr8s.api(kubeconfig=str(workload_cluster.kubeconfig))

    nodes = list(api.get("nodes"))

    assert len(nodes) == 2
    assert all(condition["status"] == "True" for node in nodes for condition in node.status.conditions if condition["type"] == "Ready")
