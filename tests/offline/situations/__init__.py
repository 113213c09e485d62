"""Situations with their truth: what is done to a live plane, then which object, field, actor and next step are right."""
