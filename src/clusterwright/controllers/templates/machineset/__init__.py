"""Collects the templates of MachineSets."""
