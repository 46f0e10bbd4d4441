# ./run mutants [NAME...] [--check] [--jobs N] [--seconds S]: see tools/mutants/README.md.
set -euo pipefail
. tools/lib.sh
need $packages_build $packages_mutants
exec python3 tools/mutants.py "$@"
