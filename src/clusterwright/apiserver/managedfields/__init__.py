"""metadata.managedFields: the owner of each field. `updating` is called by plain writes, `applying` by server-side apply."""
