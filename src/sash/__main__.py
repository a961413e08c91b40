"""`python -m sash`, where the `sash` command is not on the path."""

from sash.cli import main

if __name__ == "__main__":
    main()
