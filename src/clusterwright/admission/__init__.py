"""Admission of our kinds: links for the API server's chain, one module a kind. The rules themselves are pure and live below."""
