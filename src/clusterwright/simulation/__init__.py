"""The whole system in virtual time: a jumping event loop, seeded faults, invariants, scenarios."""
