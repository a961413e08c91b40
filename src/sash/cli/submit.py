"""A job for spark-submit, which takes Python files only:

    spark-submit --master yarn .../sash/cli/submit.py job.toml [--json]

`python -m sash.cli.submit --path` prints the path of this file.  Spark takes its settings from
spark-submit; send the job file with `--files job.toml`.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Run the job named on the command line, on the Spark that spark-submit has started."""
    if arguments == ["--path"]:
        print(__file__)
        return
    from sash.cli.app import app

    app(["run", "--submitted", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
