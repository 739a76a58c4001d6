"""``python -m anydml`` is the command ``anydml``."""

import sys

from anydml_command import main

if __name__ == "__main__":
    sys.exit(main())
