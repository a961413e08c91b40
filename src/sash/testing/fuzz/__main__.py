"""python -m sash.testing.fuzz --minutes 60: random cases until one fails or the time is over."""

from __future__ import annotations

import argparse
import sys
import time

from . import TARGETS
from .cases import search


def main(given: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m sash.testing.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, over all targets")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other cases")
    parser.add_argument("--target", choices=TARGETS, help="only this one (without: all, in turns)")
    parser.add_argument("--case", type=int, help="only the case of this number; needs --target")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    options = parser.parse_args(given)
    if options.case is not None and options.target is None:
        parser.error("--case needs --target, as numbers are counted for each target")
    names = [options.target] if options.target else list(TARGETS)
    counts = {name: [options.case or options.first, 0] for name in names}
    begun = time.monotonic()
    end = begun + 60 * options.minutes
    shown = begun
    while time.monotonic() < end:
        for name in names:
            number, operations = counts[name]
            cases, done, found = search(
                TARGETS[name],
                seed=options.seed,
                first=number,
                seconds=min(10.0, max(end - time.monotonic(), 0.0)),
                cases=None if options.case is None else 1,
            )
            counts[name] = [number + cases, operations + done]
            if found is not None:
                print(
                    f"{name}, seed {options.seed}, case {found.number}: {found.problem}\n\n"
                    f"{found.case.as_test()}"
                )
                return 1
        if options.case is not None:
            break
        if time.monotonic() - shown > 60:
            shown = time.monotonic()
            print(_said(counts, options.first, shown - begun), file=sys.stderr, flush=True)
    print(_said(counts, options.case or options.first, time.monotonic() - begun))
    return 0


def _said(counts: dict[str, list[int]], first: int, seconds: float) -> str:
    each = ", ".join(
        f"{name}: {number - first:,} cases of {operations:,} operations"
        for name, (number, operations) in counts.items()
    )
    return f"{each}; no difference found in {seconds / 60:.1f} minutes"


if __name__ == "__main__":
    sys.exit(main())
