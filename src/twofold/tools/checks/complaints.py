"""Warnings about definitions, which point at the author's own line."""

import sys
import warnings

PACKAGE = __file__.rpartition("tools")[0]
"""Where our own code lies, to tell it from the author's: the package's folder (`pathlib` takes 3 ms to load)."""


class DefinitionWarning(UserWarning):
    """Something in a definition is served, but a host or a reader would stumble over it."""


def warn_author(message: str) -> None:
    """Warn, naming the line outside this package that led here.

    `warnings.warn` can skip a package's own frames from Python 3.12 on; until then they are counted.
    """
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, DefinitionWarning, stacklevel=level)
