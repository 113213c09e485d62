"""The MachineHealthCheck controller: it finds unhealthy Machines and requests their remediation.

A pass finds the Machines that the check selects and their Nodes, judges each by the check's rules (`evaluation`), sees whether so
many may be unhealthy (`limits`), writes the verdict on the Machines, and hands the unhealthy ones over: to their owner by the
condition OwnerRemediated, or to someone else by a request made from a template (`remediation`). It never deletes a Machine.

Watches: MachineHealthChecks; their Cluster and its connection; the Machines that they select; the Nodes of the workload cluster
whose conditions change; remediation templates and requests.

Owns the conditions Paused and RemediationAllowed, and on Machines HealthCheckSucceeded; starts OwnerRemediated and
ExternallyRemediated there.
"""
