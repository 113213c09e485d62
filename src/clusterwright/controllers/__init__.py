"""One package per reconciled kind, all with the same structure: observe, plan, apply, conclude, patch."""
