# Builds one example and becomes it. $1 is its name, the rest are its arguments.
set -euo pipefail
. tools/lib.sh
name=$1
shift
group="packages_${name//-/_}"
need $packages_build ${!group:-}
build release "$name"
exec "build/release/bin/$name" "$@"
