"""Prompts: declaring them, and making their messages."""
