"""Controllers of the server itself: garbage, namespaces, CRDs, disruption budgets, initial objects."""
