#!/usr/bin/env bash
# on_device.sh [--out FOLDER] [--seconds N]: what only a GPU can say about this build, within N seconds (600).
# Runs the operations' cases and the CUDA tests on the device, trains in mixed precision, measures every rung beside
# cuBLAS, cuDNN, CUB and PyTorch, copies and sums over NCCL with as many GPUs as there are, looks for bad accesses and
# races, and writes FOLDER/report/<device>-<date>.md and .json. A part that failed, did not fit or has no tool here is said so in the report. Status 1 when a part failed.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
out=silicon limit=600
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift ;;
    --seconds) limit=$2; shift ;;
    *) echo "error: $1 is no option of on_device.sh; it knows --out FOLDER and --seconds N" >&2; exit 2 ;;
  esac
  shift
done
SECONDS=0
reserve=10 # for the report itself
if ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  echo "error: no NVIDIA GPU was found here; run this script on a machine that has one." >&2
  exit 1
fi
rm -rf "$out"
mkdir -p "$out/logs" "$out/report"
: >"$out/parts.tsv"

# ---- what this machine brings
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 >"$out/device.txt"
folders=()
while read -r site; do
  for folder in "$site"/nvidia/*/lib "$site"/torch/lib; do if [ -d "$folder" ]; then folders+=("$folder"); fi; done
done < <(python3 -c 'import site, sys; print(*site.getsitepackages(), *sys.path, sep="\n")' | grep . | sort -u)
for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib /usr/local/cuda/lib /usr/lib/x86_64-linux-gnu; do
  if [ -d "$folder" ]; then folders+=("$folder"); fi
done
library_path=$here/lib
# find_library VARIABLE NAME: the first file of that name in the folders above.
find_library() {
  local folder file
  for folder in "${folders[@]}"; do
    for file in "$folder/$2".so.[0-9]*; do
      if [ -f "$file" ]; then
        export "$1=$file"
        echo "$1=$file" >>"$out/libraries.txt"
        return
      fi
    done
  done
  echo "$1: no $2 in ${folders[*]:-any folder}" >>"$out/libraries.txt"
}
[ -n "${LEVIN_CUBLAS_LIBRARY:-}" ] || find_library LEVIN_CUBLAS_LIBRARY libcublas
[ -n "${LEVIN_CUDNN_LIBRARY:-}" ] || find_library LEVIN_CUDNN_LIBRARY libcudnn
[ -n "${LEVIN_NCCL_LIBRARY:-}" ] || find_library LEVIN_NCCL_LIBRARY libnccl
for folder in ${folders[@]+"${folders[@]}"}; do
  case $folder in */nvidia/*/lib) library_path=$library_path:$folder ;; esac
done
export LEVIN_SOURCE_DIR=$here/source

# ---- running parts
# note NAME STATUS SECONDS DETAIL: STATUS is passed, failed, left out or absent.
note() {
  printf '%s\t%s\t%s\t%s\n' "$@" >>"$out/parts.tsv"
  printf '%-28s %-8s %4s s  %s\n' "$@"
}
# The last line of a log that sums it up.
summary='^\[doctest\] test cases:|^result: |rows, |^error: |ERROR SUMMARY|RACECHECK SUMMARY'
# part NAME SECONDS COMMAND...: runs it with our libraries, as long as that or what is left; its output is a log.
failures=0
part() {
  local name=$1 most=$2 left=$((limit - reserve - SECONDS)) start=$SECONDS status=0 detail
  shift 2
  local log="$out/logs/${name// /_}.txt"
  if [ "$left" -lt 5 ]; then
    note "$name" "left out" 0 "the $limit seconds were used up"
    return
  fi
  [ "$most" -le "$left" ] || most=$left
  timeout -k 5 "$most" env "LD_LIBRARY_PATH=$library_path" "$@" >"$log" 2>&1 || status=$?
  detail=$(grep -aE "$summary" "$log" | tail -n 1 | tr -s ' \t' ' ')
  if [ "$status" = 0 ]; then
    note "$name" passed $((SECONDS - start)) "$detail"
  else
    failures=$((failures + 1))
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then detail="it ran past its $most seconds. $detail"; fi
    note "$name" failed $((SECONDS - start)) "status $status: ${detail:-$(tail -n 1 "$log" | tr '\t' ' ')}"
  fi
}
# sanitize TOOL: small sizes of every rung, without the caching allocator and without others' libraries.
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
sanitize() {
  if [ -z "$sanitizer" ]; then
    note "$1" absent 0 "compute-sanitizer was not found"
    return
  fi
  part "$1" 75 LEVIN_CUDA_CACHING=0 LEVIN_CUBLAS_LIBRARY=/none LEVIN_CUDNN_LIBRARY=/none \
    "$sanitizer" --tool "$1" --error-exitcode 9 "$here/bin/levin_bench_cuda" --check \
    reduce softmax layer_norm transpose add adamw scan sort sgemm hgemm attention attention_backward conv
}
train() {
  part "mnist $1" 45 "$here/bin/mnist" --data "$here/data" --accelerator cuda --precision "$1" --model cnn \
    --max-epochs 2 --checkpoint "$out/mnist-$1"
  if ! awk '/^result: / { split($2, pair, "="); if (pair[2] > 0.65) fine = 1 } END { exit !fine }' \
    "$out/logs/mnist_$1.txt" 2>/dev/null && grep -q "^mnist $1	passed" "$out/parts.tsv"; then
    failures=$((failures + 1))
    note "mnist $1 accuracy" failed 0 "not above 0.65"
  fi
}

part "operations" 150 "$here/bin/levin_ops_tests" --no-colors=true -tc='operations on cuda*'
part "cuda tests" 120 "$here/bin/levin_cuda_tests" --no-colors=true
part "bench check" 60 "$here/bin/levin_bench_cuda" --check
part "minimal" 20 "$here/bin/minimal"
part "nccl" 60 "$here/bin/levin_bench_nccl" --json "$out/nccl.json"
for precision in 32-true 16-mixed bf16-mixed; do train "$precision"; done

nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader,nounits -l 1 \
  >"$out/smi.csv" 2>/dev/null &
sampler=$!
part "bench" 220 "$here/bin/levin_bench_cuda" --json "$out/bench.json" --seconds 170
kill "$sampler" 2>/dev/null
wait "$sampler" 2>/dev/null
if [ -f "$out/bench.json" ]; then # PyTorch finds its own libraries
  library_path= part "pytorch" 90 python3 "$here/peer_torch.py" "$out/bench.json" --seconds 75
fi
sanitize memcheck
sanitize racecheck

python3 "$here/report.py" "$out" --commit "$(cat "$here/commit")" --date "$(date -u +%F)" --limit "$limit" ||
  failures=$((failures + 1))
echo "$failures parts failed after $SECONDS s; the report is in $out/report"
[ "$failures" = 0 ]
