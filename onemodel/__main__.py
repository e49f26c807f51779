"""`python -m onemodel COMMAND`: the command line, where the script is not on the path."""

import sys

from onemodel._cli.main import main

if __name__ == "__main__":
    sys.exit(main())
