"""`python -m kraftlake.cli` is the `kraftlake` command."""

from kraftlake.cli import main

main()
