"""Bodies and answers: JSON, YAML, protobuf, tables, and content negotiation."""
