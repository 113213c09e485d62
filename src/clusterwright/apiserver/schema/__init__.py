"""Structural schemas: pruning, defaulting, validation, and handlers for CRDs."""
