"""What the server does by itself: garbage, namespaces, CRDs, disruption budgets, initial objects."""
