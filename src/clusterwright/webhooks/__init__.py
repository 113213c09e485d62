"""Our admission and conversion as webhooks for a real API server: the same rules, over HTTPS.

`reviews` answers the API server's requests; `server` listens; `certificates` creates, stores and renews its certificates;
`configurations` registers the webhooks with the API server, and keeps the registration current.
"""
