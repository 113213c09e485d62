"""The front ends of a server: HTTP, in process, TLS, fairness, audit, port-forwards."""
