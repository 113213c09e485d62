"""Decision tables: rows as data over named guards, so that every decision can be read, tested and explained."""
