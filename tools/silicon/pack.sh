#!/usr/bin/env bash
# tools/silicon/pack.sh BIN OUT [LIMIT]: makes OUT/levin-silicon, a folder that runs on a GPU machine without this tree,
# and OUT/levin-silicon.tar.xz of it. BIN holds the programs of the cuda preset. Fails above LIMIT bytes (60 MiB).
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
. tools/lib.sh
bin=$1 out=$2 limit=${3:-$((60 * 1024 * 1024))}
package=$out/levin-silicon
rm -rf "$package"
mkdir -p "$package/bin" "$package/lib" "$package/data"

for program in levin_cuda_tests levin_ops_tests levin_bench_cuda levin_bench_nccl mnist minimal; do
  [ -f "$bin/$program" ] || fail "$bin/$program was not built."
  strip -o "$package/bin/$program" "$bin/$program"
done
# The libraries that another distribution may lack. Those of the C and C++ runtime are the machine's own.
own='^(ld-linux.*|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s)\.so.*)$'
for program in "$package"/bin/*; do
  ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }'
done | sort -u | while read -r name path; do
  if [[ ! $name =~ $own ]]; then cp -L "$path" "$package/lib/$name"; fi
done

# What the tests read of the tree.
for path in tests/pytorch kernels/include/levin/kernels autograd/src/ops; do
  mkdir -p "$package/source/$path"
  cp -r "$path/." "$package/source/$path"
done
python3 tools/silicon/subset.py /usr/share/datasets/fashion-mnist "$package/data" 12000 2000
cp tools/silicon/on_device.sh tools/silicon/report.py tools/silicon/peer_torch.py "$package/"
git rev-parse HEAD >"$package/commit" 2>/dev/null || echo unknown >"$package/commit"

# The programs hold the same kernels: a dictionary that spans one of them stores these once.
tar -C "$out" --owner=0 --group=0 -c levin-silicon | xz --lzma2=preset=3,dict=128MiB >"$out/levin-silicon.tar.xz"
size=$(stat -c %s "$out/levin-silicon.tar.xz")
[ "$size" -le "$limit" ] || fail "$out/levin-silicon.tar.xz has $size bytes; $limit are allowed."
echo "packed: $out/levin-silicon.tar.xz, $size bytes; on a GPU machine: bash levin-silicon/on_device.sh --out FOLDER"
