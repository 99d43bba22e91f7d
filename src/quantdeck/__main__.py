"""`python -m quantdeck` is `quantdeck`."""

import sys

from quantdeck.cli import main

sys.exit(main())
