"""Decisions without a cluster: bundles of objects, one reconcile pass, explanations."""
