"""A tool's stages: declare → describe → bind → run → render."""
