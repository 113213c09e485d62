"""Bodies and answers: JSON, YAML, protobuf, tables, and which of them a client asked for."""
