"""How requests come in and documents go out: HTTP, in-process, TLS, audit, metrics, discovery, OpenAPI."""
