# ./run setup [PURPOSE...]: installs the Debian packages for building and for each purpose (default: mnist and test).
set -euo pipefail
. tools/lib.sh
[ $# -gt 0 ] || set -- mnist test
for purpose in "$@"; do
  group="packages_$purpose"
  [ -n "${!group:-}" ] || usage_error "$purpose is not a purpose; choose: build mnist test bench compare docs mutants clang"
  need $packages_build ${!group}
done
echo "everything is installed for: $*"
