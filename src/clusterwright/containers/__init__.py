"""The provider of machines that are containers: DevMachine and DevCluster with the backend `docker`, and the Docker kinds.

It is written on `clusterwright.provider`, as any other provider could be, and on `clusterwright.engine`. A machine is a privileged
container of a node image; its bootstrap data run in it (`bootscript`), after missing parts of the image were prepared (`preparation`).
"""
