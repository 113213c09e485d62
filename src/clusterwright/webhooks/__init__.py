"""Our admission and conversion, served to a real API server as webhooks: the same rules, over HTTPS.

`reviews` answers the API server's questions; `server` listens; `certificates` makes, keeps and renews what it listens with;
`configurations` registers the webhooks with the API server, and keeps the registration current.
"""
