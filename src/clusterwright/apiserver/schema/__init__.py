"""Structural schemas: pruning, defaulting, validation, and the handlers made of CRDs."""
