"""The links of the admission chain that objects declare: webhooks and policies."""
