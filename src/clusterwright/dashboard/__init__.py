"""The web view: one page, read-only, live, on the API server's own port.

`site` answers requests, `door` lets people in, `fleet` looks at the informers and tells what changed, `views` and `waterfall` say
what is shown of an object. What the page shows is never a spec and never a Secret: conditions, phases, counts, times and verdicts.
"""
