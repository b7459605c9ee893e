"""Moving messages."""
