"""Runtime extensions: which handlers are registered, and how they are called.

`client.RuntimeClient` implements `topology.extensions.Extensions` over any `client.Post`: HTTPS in production (`https`), canned answers
offline. `hooks` is the catalog with the models of answers, `requests` what is asked, `openapi` both as a document. `registry` holds the
handlers, `warmup` makes it ready, `waiting` tries again what failed for want of an extension, `metrics` counts calls.
"""
