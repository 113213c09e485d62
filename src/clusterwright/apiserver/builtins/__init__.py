"""The built-in kinds that are served: their rules, defaults and columns."""
