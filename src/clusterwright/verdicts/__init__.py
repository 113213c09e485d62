"""Verdicts on the clusters of a process, kept current: its objects, its state, the time since when, and its history.

`cluster_objects` knows from the informers what belongs to a Cluster, `judge` keeps a verdict on each, `history` remembers them,
`store` keeps the history on disk, `series` exports them to Prometheus, `wiring` adds all this to a manager.
"""
