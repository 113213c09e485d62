"""Cluster API in Python."""
