"""Other people's providers as processes next to the plane: installed from their release files, started, supervised and removed.

`clusterwright provider add` writes a record into the data directory; the plane acts on records only (`records`). An object of the API
never starts a process, because tenants may write objects. Pure parts: `release`, `deployment`, `flags`, `hooks`, `status`. Effects:
`records`, `output`, `process`, `probing`, `placing`, `installing`, and `keeper`, which runs one provider.
"""
