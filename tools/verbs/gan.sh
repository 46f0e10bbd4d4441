# ./run gan [ARGUMENTS]: trains a GAN. The classifier of ./run mnist scores its images and is trained first if missing.
set -euo pipefail
wanted=1
for argument in "$@"; do
  case $argument in --help | -h | --classifier | --classifier=*) wanted=0 ;; esac
done
if [ "$wanted" = 1 ] && [ ! -e runs/mnist/best ]; then
  echo "==> training the classifier that scores the images: ./run mnist" >&2
  bash tools/example.sh mnist
fi
exec bash tools/example.sh gan "$@"
