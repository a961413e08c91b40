#!/bin/sh
# The lines of the README and the tutorial, as printed, by a package that is installed from a fresh
# clone into a fresh environment.  Run from anywhere in the repository; what is not committed is
# not tried.
set -eu
here=$(git -C "$(dirname "$0")" rev-parse --show-toplevel)
there=$(mktemp -d)
trap 'rm -rf "$there"' EXIT
git clone --quiet --no-hardlinks "$here" "$there/sash"
"${PYTHON:-python3}" -m venv "$there/venv"
"$there/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$there/sash[test]"
cd "$there"
export SASH_CACHE_DIR="$there/kernels"
"$there/venv/bin/python" -m pytest -q -c "$there/sash/pyproject.toml" --rootdir "$there/sash" \
    "$there/sash/tests/front/test_as_printed.py" "$@"
"$there/venv/bin/python" -c "
import sash
assert not sash.__file__.startswith('$there/sash'), sash.__file__
print('as printed, by sash', sash.__version__, 'installed from a fresh clone')"
