#!/usr/bin/env bash
# tools/silicon/pack.sh BIN OUT [LIMIT]: makes OUT/levin-silicon, a folder that runs on a GPU machine without this tree,
# and OUT/levin-silicon.tar.xz of it. BIN holds the programs of the silicon preset. Fails above LIMIT bytes (50 MiB).
# Does nothing if the package is newer than all its inputs. LEVIN_XZ_PRESET is the level of compression (3).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tools/lib.sh
bin=$1 out=$2 limit=${3:-$((50 * 1024 * 1024))}
package=$out/levin-silicon
programs=(levin_cuda_tests levin_ops_tests levin_bench_cuda levin_bench_nccl mnist minimal)
scripts=(on_device.sh cases.py report.py peer_torch.py)
# Files of the tree that the tests read.
sources=(tests/pytorch kernels/include/levin/kernels autograd/src/ops autograd/include/levin/autograd/ops
  docs/cuda_graphs.md docs/support.md tests/cuda/graph/graph_errors_test.cpp)
unpack="tar -xJf levin-silicon.tar.xz, or without xz: python3 -c 'import tarfile; tarfile.open(\"levin-silicon.tar.xz\").extractall()'"
next="$unpack; then bash levin-silicon/on_device.sh --out FOLDER"
for program in "${programs[@]}"; do
  [ -f "$bin/$program" ] || fail "$bin/$program was not built."
done
archive=$out/levin-silicon.tar.xz
if [ -f "$archive" ] && [ "$(stat -c %s "$archive")" -le "$limit" ] &&
  [ -z "$(find "${programs[@]/#/$bin/}" "${scripts[@]/#/tools/silicon/}" "${sources[@]}" tools/silicon/pack.sh -newer "$archive" | head -n 1)" ]; then
  echo "nothing has changed: $archive, $(stat -c %s "$archive") bytes; on a GPU machine: $next"
  exit 0
fi
rm -rf "$package" "$archive"
mkdir -p "$package/bin" "$package/lib" "$package/data"

for program in "${programs[@]}"; do
  strip -o "$package/bin/$program" "$bin/$program"
done
# Libraries that another distribution may lack are packed. Those of the C and C++ runtime are not.
own='^(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so.*)$'
for program in "$package"/bin/*; do
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }'
done | sort -u | while read -r name path; do
  if [[ ! $name =~ $own ]]; then cp -L "$path" "$package/lib/$name"; fi
done

for path in "${sources[@]}"; do
  mkdir -p "$package/source/$(dirname "$path")"
  cp -r "$path" "$package/source/$path"
done
python3 tools/silicon/subset.py /usr/share/datasets/fashion-mnist "$package/data" 12000 2000
cp "${scripts[@]/#/tools/silicon/}" "$package/"
git describe --always --abbrev=40 --dirty >"$package/commit" 2>/dev/null || echo unknown >"$package/commit"

# The programs contain the same kernels; a dictionary larger than one program stores these once.
tar -C "$out" --owner=0 --group=0 -c levin-silicon | xz --lzma2=preset=${LEVIN_XZ_PRESET:-3},dict=128MiB >"$archive"
size=$(stat -c %s "$archive")
[ "$size" -le "$limit" ] || fail "$archive has $size bytes; $limit are allowed."
echo "packed: $archive, $size bytes; on a GPU machine: $next"
