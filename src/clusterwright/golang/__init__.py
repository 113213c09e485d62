"""User-visible behaviour of Go: quoting, regular expressions, number formats."""
