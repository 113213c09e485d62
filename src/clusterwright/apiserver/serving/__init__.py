"""How requests reach a server: HTTP, in process, TLS, fairness, audit, port-forwards."""
