"""Signature → input schema; the bytes of a call → arguments, or every problem at once."""
