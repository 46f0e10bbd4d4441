# Builds one example and replaces itself by it. $1 is the example's name, the rest are its arguments.
set -euo pipefail
. tools/lib.sh
name=$1
shift
group="packages_${name//-/_}"
need $packages_build ${!group:-}
simd=native # kernels for the other instruction sets would lengthen the first build
build release "$name"
case $name in gpt | lstm) make_text ;; esac
read -r LEVIN_STARTED _ </proc/uptime # the program reports its start-up time
export LEVIN_STARTED
exec "build/release/bin/$name" "$@"
