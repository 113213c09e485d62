"""Paths that are not resources: discovery, OpenAPI, version, health and metrics."""
