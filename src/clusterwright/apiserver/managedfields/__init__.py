"""metadata.managedFields: who owns which field. `updating` is called by plain writes, `applying` by server-side apply."""
