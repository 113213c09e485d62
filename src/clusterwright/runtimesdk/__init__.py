"""Runtime extensions: the registered handlers, and calls to them.

`client.RuntimeClient` implements `topology.extensions.Extensions` over any `client.Post`: HTTPS in production (`https`), recorded answers
offline. `hooks` is the catalog with the models of answers, `requests` has those of requests, `openapi` both as a document. `registry` holds
the handlers, `warmup` initialises it, `waiting` requeues passes that failed because of an extension, `metrics` counts calls.
"""
