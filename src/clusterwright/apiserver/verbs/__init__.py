"""What a request does: reads, writes, patches, deletions, subresources, reviews."""
