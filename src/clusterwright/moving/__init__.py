"""Move clusters from one management cluster to another, as `clusterctl move` does: `plan` decides, `transfer` acts."""
