"""The types of patches as pure functions: JSON patch, merge patch, strategic merge."""
