# ./run gan [ARGUMENTS]: trains a GAN. Its pictures are judged by the classifier of ./run mnist, which is trained first
# where there is none.
set -euo pipefail
wanted=1
for argument in "$@"; do
  case $argument in --help | -h | --classifier | --classifier=*) wanted=0 ;; esac
done
if [ "$wanted" = 1 ] && [ ! -e runs/mnist/best ]; then
  echo "==> the judge of the pictures comes first: ./run mnist" >&2
  bash tools/example.sh mnist
fi
exec bash tools/example.sh gan "$@"
