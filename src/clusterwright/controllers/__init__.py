"""One package per reconciled kind, all of one shape: observe, plan, apply, conclude, patch."""
