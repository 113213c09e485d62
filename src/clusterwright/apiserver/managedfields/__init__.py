"""metadata.managedFields: who owns which field, and server-side apply. `ownership` is what a write calls."""
