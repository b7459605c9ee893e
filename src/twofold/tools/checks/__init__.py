"""What else a definition carries, checked when it is declared."""
