#!/usr/bin/env bash
# on_device.sh [--out FOLDER] [--seconds N] [--only PART,...] [--once] [--dry-run]: runs the checks and measurements that
# need a GPU within N seconds (480). The parts in order, and the groups that --only also takes:
#   correctness   operations cuda_tests bench_check minimal nccl mnist
#   figures       bench pytorch
#   sanitizers    memcheck racecheck initcheck synccheck
# Three calls of eight minutes, one per group, run everything; calls with the same FOLDER extend one report. FOLDER gets
# three files, which are rewritten after every part: <device>-<date>.md, <device>-<date>.json and logs.tar.gz.
# --once does not repeat failed test cases under compute-sanitizer, so that a first call reaches every part.
# --dry-run tries this script without a GPU, with programs built for the emulator and little of each part.
# The report lists parts that failed, did not fit into the time or lack their tool. The exit status is 1 if a part
# failed.
set -uo pipefail
here=$(dirname "$(readlink -f "$0")")
out=silicon limit=480 only= dry=0 repeat=()
correctness="operations cuda_tests bench_check minimal nccl mnist"
figures="bench pytorch"
sanitizers="memcheck racecheck initcheck synccheck"
usage() { echo "error: $*; on_device.sh knows --out FOLDER, --seconds N, --only PART,..., --once and --dry-run" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --out | --seconds | --only) [ $# -gt 1 ] || usage "$1 needs a value" ;;&
    --out) out=$2; shift ;;
    --seconds) limit=$2; shift ;;
    --only) only=$2; shift ;;
    --once) repeat=(--once) ;;
    --dry-run) dry=1 ;;
    *) usage "$1 is not an option" ;;
  esac
  shift
done
[[ $limit =~ ^[0-9]+$ ]] || usage "--seconds $limit is not a number"
parts=
for name in ${only//,/ }; do
  case $name in
    correctness | figures | sanitizers) parts+=" ${!name}" ;;
    *)
      [[ " $correctness $figures $sanitizers " == *" $name "* ]] ||
        usage "$name is not a part (parts: $correctness $figures $sanitizers)"
      parts+=" $name" ;;
  esac
done
[ -n "$only" ] || parts="$correctness $figures $sanitizers"
wanted() { [[ " $parts " == *" $1 "* ]]; }

SECONDS=0
reserve=10 # seconds for the report itself
own_library_path=${LD_LIBRARY_PATH:-}
if [ "$dry" = 0 ] && ! nvidia-smi -L 2>/dev/null | grep -q '^GPU '; then
  echo "error: no NVIDIA GPU was found here; run this script on a machine that has one." >&2
  exit 1
fi
command -v python3 >/dev/null || { echo "error: python3 was not found; the parts are run by Python scripts." >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out" "$work/logs"
if [ -f "$out/logs.tar.gz" ]; then # continue the report of an earlier call
  python3 -m tarfile -e "$out/logs.tar.gz" "$work" && mv "$work"/silicon/* "$work/" 2>/dev/null
  mkdir -p "$work/logs"
fi
touch "$work/parts.tsv"

# ---- the machine's tools and libraries
if [ "$dry" = 1 ]; then
  echo "Levin emulator, none" >"$work/device.txt"
else
  nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | head -n 1 >"$work/device.txt"
fi
folders=()
while read -r site; do
  for folder in "$site"/nvidia/*/lib "$site"/torch/lib; do if [ -d "$folder" ]; then folders+=("$folder"); fi; done
done < <(python3 -c 'import site, sys; print(*site.getsitepackages(), *sys.path, sep="\n")' | grep . | sort -u)
for folder in /usr/local/cuda/lib64 /usr/local/cuda/targets/*/lib /usr/local/cuda/lib /usr/lib/x86_64-linux-gnu; do
  if [ -d "$folder" ]; then folders+=("$folder"); fi
done
library_path=$here/lib
: >"$work/libraries.txt"
# find_library VARIABLE NAME: sets VARIABLE to the first file of that name in the folders above.
find_library() {
  local folder file
  for folder in "${folders[@]}"; do
    for file in "$folder/$2".so.[0-9]*; do
      if [ -f "$file" ]; then
        export "$1=$file"
        echo "$1=$file" >>"$work/libraries.txt"
        return
      fi
    done
  done
  echo "$1: no $2 in ${folders[*]:-any folder}" >>"$work/libraries.txt"
}
if [ "$dry" = 0 ]; then # the emulator does not use them
  [ -n "${LEVIN_CUBLAS_LIBRARY:-}" ] || find_library LEVIN_CUBLAS_LIBRARY libcublas
  [ -n "${LEVIN_CUDNN_LIBRARY:-}" ] || find_library LEVIN_CUDNN_LIBRARY libcudnn
  [ -n "${LEVIN_NCCL_LIBRARY:-}" ] || find_library LEVIN_NCCL_LIBRARY libnccl
fi
for folder in ${folders[@]+"${folders[@]}"}; do
  case $folder in */nvidia/*/lib) library_path=$library_path:$folder ;; esac
done
# The driver's library may be on the machine's own path or where containers mount it.
library_path=$library_path:${own_library_path:+$own_library_path:}/usr/local/nvidia/lib64
export LEVIN_SOURCE_DIR=$here/source
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
[ "$dry" = 0 ] || sanitizer= # a dry run has nothing to check
{
  echo "device and driver: $(cat "$work/device.txt")"
  echo "libcuda: $(LD_LIBRARY_PATH=$library_path ldconfig -p 2>/dev/null | grep -m 1 libcuda.so || echo "not in ldconfig's list")"
  ls -l /usr/local/nvidia/lib64/libcuda.so* 2>/dev/null
  sed 's/^/library: /' "$work/libraries.txt"
  echo "LD_LIBRARY_PATH of programs: $library_path"
  echo "nvcc: $({ PATH=$PATH:/usr/local/cuda/bin nvcc --version 2>/dev/null || echo "not found"; } | tail -n 1)"
  echo "compute-sanitizer: ${sanitizer:-not found}"
  echo "python3: $(python3 --version 2>&1), $(command -v python3)"
  echo "PyTorch: $(python3 -c 'import torch; print(torch.__version__, torch.cuda.is_available())' 2>&1 | tail -n 1)"
  echo "package: $(cat "$here/commit" 2>/dev/null || echo unknown)"
} >"$work/environment.txt"
cat "$work/environment.txt"

# ---- running parts
# publish: writes the report and the archive by renaming, so that an interrupted call leaves complete files.
publish() {
  python3 "$here/report.py" "$work" --to "$out" --commit "$(cat "$here/commit" 2>/dev/null || echo unknown)" \
    --date "$(date -u +%F)" --limit "$limit" || return 1
  python3 - "$work" "$out/logs.tar.gz" <<'PYTHON'
import os, sys, tarfile
folder, target = sys.argv[1:]
with tarfile.open(target + ".new", "w:gz") as archive:
    archive.add(folder, "silicon")
os.replace(target + ".new", target)
PYTHON
}
# note NAME STATUS SECONDS DETAIL: STATUS is passed, failed, left out or absent. A later call overrides an earlier one.
note() {
  local others
  others=$(grep -v "^$1	" "$work/parts.tsv" || true)
  { [ -z "$others" ] || echo "$others"; printf '%s\t%s\t%s\t%s\n' "$@"; } >"$work/parts.new"
  mv "$work/parts.new" "$work/parts.tsv"
  printf '%-28s %-8s %4s s  %s\n' "$@"
}
# Matches the last line of a log, which summarises it.
summary='^\[doctest\] test cases:|^result: |rows, |^error: |ERROR SUMMARY|RACECHECK SUMMARY'
failures=0
# left MOST: prints the seconds that a part may take.
left() { local rest=$((limit - reserve - SECONDS)); echo $((rest < $1 ? rest : $1)); }
# part NAME SECONDS COMMAND...: runs a command with our libraries for at most SECONDS or the remaining time, and logs
# it.
part() { run_part "$1" "$2" "LD_LIBRARY_PATH=$library_path" "${@:3}"; }
run_part() {
  local name=$1 most start=$SECONDS status=0 detail
  most=$(left "$2")
  shift 2
  local log="$work/logs/${name// /_}.txt"
  if [ "$most" -lt 5 ]; then
    note "$name" "left out" 0 "the $limit seconds were used up"
    return
  fi
  timeout -k 5 "$most" env "$@" >"$log" 2>&1 || status=$?
  detail=$(grep -aE "$summary" "$log" | tail -n 1 | tr -s ' \t' ' ')
  if [ "$status" = 0 ]; then
    note "$name" passed $((SECONDS - start)) "$detail"
  else
    failures=$((failures + 1))
    if [ "$status" = 124 ] || [ "$status" = 137 ]; then detail="it exceeded its $most seconds. $detail"; fi
    note "$name" failed $((SECONDS - start)) "status $status: ${detail:-$(tail -n 1 "$log" | tr '\t' ' ')}"
  fi
  publish || failures=$((failures + 1))
}
# cases NAME SECONDS PROGRAM OPTIONS...: runs each case of a doctest program in its own process.
cases() {
  local name=$1 most
  most=$(($(left "$2") - 5))
  part "$name" "$2" python3 "$here/cases.py" "$here/bin/$3" --out "$work/logs/${name// /_}" --seconds "$most" ${repeat[@]+"${repeat[@]}"} "${@:4}"
}
# sanitize TOOL: runs small sizes of every rung, without the caching allocator and other libraries, in one process
# because the tool starts slowly.
sanitize() {
  if [ -z "$sanitizer" ]; then
    note "$1" absent 0 "compute-sanitizer was not found"
    publish
    return
  fi
  part "$1" 115 LEVIN_CUDA_CACHING=0 LEVIN_CUBLAS_LIBRARY=/none LEVIN_CUDNN_LIBRARY=/none \
    "$sanitizer" --tool "$1" --error-exitcode 9 "$here/bin/levin_bench_cuda" --check --one-process \
    reduce softmax layer_norm transpose add adamw scan sort pool pool_backward column_sum channel_sum sgemm hgemm attention attention_backward conv
}
train() {
  local epochs=2 least=0.65
  if [ "$dry" = 1 ]; then epochs=1 least=-1; fi
  part "mnist $1" 45 "$here/bin/mnist" --data "$here/data" --accelerator cuda --precision "$1" --model cnn \
    --max-epochs "$epochs" --checkpoint "$work/mnist-$1"
  rm -rf "$work/mnist-$1"
  if ! awk -v least="$least" '/^result: / { split($2, pair, "="); if (pair[2] > least) fine = 1 } END { exit !fine }' \
    "$work/logs/mnist_$1.txt" 2>/dev/null && grep -q "^mnist $1	passed" "$work/parts.tsv"; then
    failures=$((failures + 1))
    note "mnist $1 accuracy" failed 0 "not above $least"
  fi
}

few=() bench=(--json "$work/bench.jsonl") precisions="32-true 16-mixed bf16-mixed"
if [ "$dry" = 1 ]; then
  export LEVIN_CASE=softmax LEVIN_SMALL_CASES=1
  few=(--only "*softmax*") bench+=(--check softmax add) precisions=32-true
fi
if wanted operations; then cases operations 200 levin_ops_tests --only 'operations on cuda*' --shards 8 --each 170; fi
if wanted cuda_tests; then cases "cuda tests" 170 levin_cuda_tests --jobs 8 --each 20 ${few[@]+"${few[@]}"}; fi
if wanted bench_check; then
  part "bench check" 90 "$here/bin/levin_bench_cuda" --check ${few[@]+softmax}
fi
if wanted minimal; then part "minimal" 20 "$here/bin/minimal"; fi
if wanted nccl; then
  if [ "$dry" = 1 ]; then nccl_options=--check; else nccl_options=; fi
  part "nccl" 60 "$here/bin/levin_bench_nccl" --json "$work/nccl.json" $nccl_options
fi
if wanted mnist; then for precision in $precisions; do train "$precision"; done; fi
if wanted bench; then
  nvidia-smi --query-gpu=clocks.sm,power.draw,temperature.gpu --format=csv,noheader,nounits -l 1 \
    >"$work/smi.csv" 2>/dev/null &
  sampler=$!
  most=$(left 330)
  part "bench" 330 "$here/bin/levin_bench_cuda" "${bench[@]}" --seconds $((most > 45 ? most - 30 : most))
  kill "$sampler" 2>/dev/null
  wait "$sampler" 2>/dev/null
fi
if wanted pytorch; then
  if [ -f "$work/bench.jsonl" ]; then # PyTorch finds its own libraries in the machine's environment
    run_part "pytorch" 130 -- python3 "$here/peer_torch.py" "$work/bench.jsonl" --to "$work/pytorch.jsonl" --seconds 115
  else
    note "pytorch" absent 0 "there are no rows of part bench to compare with"
  fi
fi
for tool in $sanitizers; do if wanted "$tool"; then sanitize "$tool"; fi; done

publish || failures=$((failures + 1))
echo "$failures parts failed after $SECONDS s; the report is in $out"
[ "$failures" = 0 ]
