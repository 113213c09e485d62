"""The built-in kinds: their rules, defaults and columns."""
