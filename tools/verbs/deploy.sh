# ./run deploy [ARGUMENTS]: writes a trained classifier for deployment, then runs it in a program without training code.
set -euo pipefail
. tools/lib.sh
need $packages_build $packages_deploy
build release deploy classifier
build/release/bin/deploy "$@"
out=runs/deploy
data=()
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) exit 0 ;;
    --out) out=$2; shift ;;
    --out=*) out=${1#*=} ;;
    --data) data=("$2"); shift ;;
    --data=*) data=("${1#*=}") ;;
  esac
  shift
done
exec build/release/bin/classifier "$out" "${data[@]}"
