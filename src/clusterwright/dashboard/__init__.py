"""The web view: one page, read-only, live, on the API server's own port.

`site` answers requests, `door` manages sessions, `fleet` reads the informers and reports changes, `views` and `waterfall` select what is
shown of an object: conditions, phases, counts, times and verdicts, but never a spec or a Secret.
"""
