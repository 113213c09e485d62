"""Who asks, and who may do what: authentication, RBAC, tokens."""
