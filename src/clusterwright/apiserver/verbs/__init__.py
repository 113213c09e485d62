"""Serve requests: reads, writes, patches, deletions, subresources, reviews."""
