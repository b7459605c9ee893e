"""`python -m twofold`: the `twofold` command, for hosts that are told an interpreter and a module."""

import sys

from twofold.cli import main

if __name__ == "__main__":
    sys.exit(main())
