"""The objects of the API: frozen typed values with their wire form. No behaviour, no clock, no I/O."""
