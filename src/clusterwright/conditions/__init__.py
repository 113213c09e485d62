"""The algebra of conditions: get, set, mirror, aggregate, summarize, merge. Pure."""
