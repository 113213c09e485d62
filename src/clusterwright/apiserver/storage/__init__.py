"""Objects and their history: the store, its journal, the streams of watches."""
