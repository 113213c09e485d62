"""Runtime extensions: which handlers are registered, and how they are called.

`client.RuntimeClient` implements `topology.extensions.Extensions` over any `client.Post`: HTTPS in production, canned answers offline.
"""
