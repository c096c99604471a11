"""Where the program `fila` of the archive begins."""

import sys

from fila.cli.main import main

sys.exit(main())
