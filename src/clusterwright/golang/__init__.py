"""Behaviour of Go that users can see: how it quotes texts, which regular expressions it accepts."""
