"""The nouns: frozen typed objects as they are on the wire. No behaviour, no clock, no I/O."""
