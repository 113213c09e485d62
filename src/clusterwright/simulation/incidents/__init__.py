"""Public incidents by number, each with data and a scenario that plays it in virtual time with the production controllers."""
