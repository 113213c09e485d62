"""Authentication, RBAC and tokens."""
