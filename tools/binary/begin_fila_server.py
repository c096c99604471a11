"""Where the program `fila-server` of the archive begins."""

import sys

from fila.server.program import main

sys.exit(main())
