"""What Go does and users can see: how it quotes texts, which regular expressions it knows."""
