"""The in-memory infrastructure provider: DevCluster and DevMachine with the backend `inMemory`, or the Docker kinds (`kinds`).

A DevCluster reserves an endpoint in the `Cloud`; a DevMachine boots a simulated machine from its real bootstrap data, stage by stage:
VM, Node, etcd, API server. What exists is never repaired, so that tests can break it; faults are asked for by annotation
(`clusterwright.inmemory.faults`).
"""
