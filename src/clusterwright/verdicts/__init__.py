"""Verdicts on the clusters of a process, kept current: its objects, its state, the time since when, and its history.

`households` knows from the informers what belongs to a Cluster, `judge` keeps a verdict on each, `history` remembers them, `store` keeps
the history on disk, `series` tells Prometheus, `witness` asks the controllers of the same process.
"""
