"""A job for spark-submit, which takes Python files only:

    spark-submit --master yarn .../sash/cli/submit.py job.toml [--json]

`python -m sash.cli.submit --path` prints where this file is.  Spark's settings are those that
spark-submit is given; a job file goes along with `--files job.toml`.
"""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str]) -> None:
    """Run the job of a command line on the Spark that spark-submit has started."""
    if arguments == ["--path"]:
        print(__file__)
        return
    from sash.cli.app import app

    app(["run", "--submitted", *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
