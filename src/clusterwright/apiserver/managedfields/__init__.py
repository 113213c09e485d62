"""metadata.managedFields: who owns which field, and server-side apply."""

from clusterwright.apiserver.managedfields.managers import apply, update

__all__ = ["apply", "update"]
