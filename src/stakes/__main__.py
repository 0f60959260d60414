"""`python -m stakes` is the command `stakes`."""

from stakes.cli.main import main

main()
