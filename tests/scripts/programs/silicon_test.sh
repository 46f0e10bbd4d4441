# ./run silicon: its errors for missing requirements, and the results of on_device.sh for programs that pass, fail, hang
# or are missing. The programs are stand-ins, so no number here describes a GPU.
. tests/scripts/lib.sh
work=$build/silicon_test
rm -rf "$work"
mkdir -p "$work/tools" "$work/gpu" "$work/levin-silicon/bin" "$work/levin-silicon/lib" "$work/levin-silicon/data"
for tool in bash env basename dirname readlink grep sed tr cat; do
  ln -s "$(command -v "$tool")" "$work/tools/$tool"
done

stand_in() { # FILE: a script from stdin
  { echo '#!/bin/bash'; cat; } >"$1"
  chmod +x "$1"
}
# says WORDS COMMAND...: checks for status 1 and one line on stderr that contains the words.
says() {
  local words=$1 status=0 said
  shift
  said=$("$@" 2>&1 >/dev/null) || status=$?
  [ "$status" = 1 ] || fail "$* ended with $status, not 1"
  [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == "error: "*"$words"* ]] || fail "$* said: $said"
}

# ---- ./run silicon without a GPU, and without nvcc
says "./run silicon --pack builds the package" env PATH="$work/tools" ./run silicon
says "nvcc was not found" env PATH="$work/tools" CUDA_HOME="$work/none" ./run silicon --pack
stand_in "$work/gpu/nvidia-smi" <<'FAKE'
case $* in
  -L) echo "GPU 0: Stand-in (UUID: none)" ;;
  *name,driver_version*) echo "Stand-in X1, 1.2.3" ;;
  *clocks.sm*) for clock in 1500 1700 1600; do echo "$clock, 300.5, 50"; done ;;
esac
FAKE
says "nvcc was not found" env PATH="$work/gpu:$work/tools" CUDA_HOME="$work/none" ./run silicon
status=0
./run silicon --nonsense >/dev/null 2>&1 || status=$?
[ "$status" = 2 ] || fail "./run silicon --nonsense ended with $status, not 2"

# ---- on_device.sh
package=$work/levin-silicon
cp tools/silicon/{on_device.sh,cases.py,report.py,peer_torch.py} "$package/"
echo abc123 >"$package/commit"
says "no NVIDIA GPU was found here" env PATH="$work/tools" bash "$package/on_device.sh" --out "$work/none"
for words in "--seconds soon" "--only nonsense" "--only operations,nonsense" "--nonsense" "--out"; do
  status=0
  bash "$package/on_device.sh" $words >/dev/null 2>&1 || status=$?
  [ "$status" = 2 ] || fail "on_device.sh $words ended with $status, not 2"
done

python3 - >"$work/bench.jsonl" <<'PYTHON'
import json

def row(family, rung, dtype, sizes, unit, peers, ok=True):
    shape = " ".join(f"{k}={v}" for k, v in sizes.items())
    return {"name": f"{family}/{rung}", "family": family, "rung": rung, "shape": shape, "dtype": dtype, "sizes": sizes,
            "error": 0.0 if ok else 9.0, "ok": ok, "unit": unit, "seconds": 2.0, "bytes": 6e9, "flops": 8e12,
            "share": 0.5, "floor_seconds": 1.0, "peers": peers}

square = {"m": 4096, "n": 4096, "k": 4096}
rows = [row("sgemm", "naive", "float32", square, "f32", {"cublas": {"seconds": 0.2, "ratio": 0.1}}),
        row("sgemm", "async_stages", "float32", square, "f32", {"cublas": {"seconds": 1.92, "ratio": 0.96}}),
        row("sgemm", "tf32", "float32", square, "tf32", {"cublas": {"seconds": 4.0, "ratio": 2.0}}),
        row("hgemm", "persistent", "float16", square, "f16", {"cublas": {"missing": "it is not on this machine."}}),
        row("softmax", "05_vectors", "float32", {"rows": 16384, "columns": 8192}, "memory",
            {"memcpy": {"seconds": 1.8, "ratio": 0.9}}),
        row("layer_norm", "04_vectors", "float32", {"rows": 16384, "columns": 8192}, "memory",
            {"memcpy": {"seconds": 3.0, "ratio": 1.5}}, ok=False)]
training = [{"name": f"cnn/{p}", "net": "cnn", "precision": p, "shape": "batch=1", "activation_bytes": b, "loss": 2.3,
             "ok": True, "seconds": s} for p, s, b in (("32-true", 4.0, 100), ("16-mixed", 1.0, 60))]
print(json.dumps({"kind": "machine", "copy_bytes_a_second": 3e12, "copy_noise": 0.001, "library_flops_a_second": {},
                  "library_missing": "no cuBLAS"}))
for kind, lines in ("training", training), ("row", rows), ("left_out", [{"name": "sort"}]):
    for line in lines:
        print(json.dumps({"kind": kind, **line}))
print('{"kind": "row", "cut')  # the last line of a run that was ended
PYTHON
stand_in "$package/bin/levin_ops_tests" <<FAKE
if [ "\$1" = --list-test-cases ]; then
  printf '[doctest] listing all test case names\n=====\noperations on cuda, all\n=====\n[doctest] 1\n'
  exit
fi
echo "\$LEVIN_SHARD \$*" >>"$work/shards.txt"
[ "\$LEVIN_SOURCE_DIR" = "$package/source" ]
FAKE
stand_in "$package/bin/levin_cuda_tests" <<'FAKE'
case "$*" in
  *--list-test-cases*"-ts=holds a stream"*) echo "held, back" ;;
  *--list-test-cases*) printf 'fine\nheld, back\nbroken\n' ;;
  *"-tc=held\, back"*) [ "$CUDA_MODULE_LOADING" = EAGER ] ;;
  *-tc=fine*) [ -z "${CUDA_MODULE_LOADING:-}" ] ;;
  *-tc=broken*) echo "launches block: ${CUDA_LAUNCH_BLOCKING:-no}"; exit 1 ;;
  *) exit 7 ;;
esac
FAKE
stand_in "$package/bin/levin_bench_cuda" <<FAKE
if [ "\$1" = --json ]; then cp "$work/bench.jsonl" "\$2"; fi
echo "6 rows, 0 wrong, 1 problems left out"
FAKE
stand_in "$package/bin/mnist" <<'FAKE'
while [ $# -gt 1 ] && [ "$1" != --precision ]; do shift; done
accuracy=0.8100
if [ "$2" = bf16-mixed ]; then accuracy=0.1000; fi
echo "result: test_accuracy=$accuracy test_loss=0.5 train_seconds=1.5 model=cnn"
FAKE
stand_in "$package/bin/levin_bench_nccl" <<'FAKE'
cat >"$2" <<'JSON'
{"copies": [{"name": "pinned to device", "bytes": 8000000, "ok": true, "seconds": 0.002},
            {"name": "device to device", "bytes": 8000000, "ok": false}],
 "checks": [{"name": "ddp equals no ddp", "ok": true}],
 "all_reduce": [{"ranks": 2, "bytes": 4000000, "ok": true, "seconds": 0.001}, {"ranks": 2, "bytes": 8000, "ok": true}],
 "ddp": [{"ranks": 1, "ok": true, "seconds": 0.004}, {"ranks": 2, "ok": true, "seconds": 0.005}]}
JSON
echo "7 rows, 1 wrong"
FAKE
stand_in "$package/bin/minimal" <<'FAKE'
echo "result: $LD_LIBRARY_PATH"
FAKE
stand_in "$work/gpu/compute-sanitizer" <<'FAKE'
if [ "$2" = racecheck ]; then echo "RACECHECK SUMMARY: 1 hazard"; exit 9; fi
[ "$LEVIN_CUDA_CACHING" = 0 ] && echo "ERROR SUMMARY: 0 errors"
FAKE

# Three calls, as for a device that is there for minutes at a time, make one report.
for group in correctness figures memcheck,racecheck,initcheck,synccheck; do
  status=0
  PATH=$work/gpu:$PATH LD_LIBRARY_PATH=/machine/own bash "$package/on_device.sh" --out "$work/out" --only $group || status=$?
  [ "$status" = "$([ $group = figures ] && echo 0 || echo 1)" ] || fail "$group gave status $status"
done
[ "$(ls "$work/out" | wc -l)" = 3 ] || fail "the output is not three files: $(ls "$work/out")"
[ "$(cut -d ' ' -f 1 "$work/shards.txt" | sort | tr '\n' ' ')" = "1/8 2/8 3/8 4/8 5/8 6/8 7/8 8/8 " ] || fail "$(cat "$work/shards.txt")"
grep -q -- '-tc=operations on cuda\\, all$' "$work/shards.txt" || fail "$(cat "$work/shards.txt")"
mkdir "$work/logs"
python3 -m tarfile -e "$work/out/logs.tar.gz" "$work/logs"
again=$work/logs/silicon/logs/cuda_tests/003_broken.txt
for words in "broken: status 1" "launches block: no" "==== CUDA_LAUNCH_BLOCKING=1: status 1" "launches block: 1" \
  "==== memcheck: passed" "==== racecheck: status 9" "==== initcheck: passed" "==== synccheck: passed"; do
  grep -qxF "$words" "$again" || fail "$again lacks \"$words\": $(cat "$again")"
done
grep -qxF "again: broken: CUDA_LAUNCH_BLOCKING=1: status 1; memcheck: passed; racecheck: status 9; initcheck: passed; synccheck: passed" \
  "$work/logs/silicon/logs/cuda_tests.txt" || fail "$(cat "$work/logs/silicon/logs/cuda_tests.txt")"
report=$work/out/stand-in-x1-$(date -u +%F)
python3 - "$report" "$work/logs/silicon/logs/minimal.txt" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1] + ".json"))
page = open(sys.argv[1] + ".md").read()
parts = {p["name"]: p for p in report["parts"]}
expected = {"operations": "passed", "cuda tests": "failed", "bench check": "passed", "minimal": "passed",
            "nccl": "passed",
            "mnist 32-true": "passed", "mnist 16-mixed": "passed", "mnist bf16-mixed": "passed",
            "mnist bf16-mixed accuracy": "failed", "bench": "passed", "pytorch": "passed", "memcheck": "passed",
            "racecheck": "failed", "initcheck": "passed", "synccheck": "passed"}
assert {n: p["status"] for n, p in parts.items()} == expected, parts
assert parts["operations"]["detail"] == "result: 8 cases, 0 failed, 0 left out", parts
assert parts["cuda tests"]["detail"] == "status 1: result: 3 cases, 1 failed, 0 left out", parts
assert parts["minimal"]["detail"].startswith("result: lib:") and "/" not in parts["minimal"]["detail"], parts["minimal"]
path = open(sys.argv[2]).read().removeprefix("result: ").strip().split(":")
assert path[0].endswith("levin-silicon/lib") and path[-2:] == ["/machine/own", "/usr/local/nvidia/lib64"], path
for words in ("device and driver: Stand-in X1, 1.2.3", "nvcc: ", "python3: Python 3", "libcuda: ", "package: abc123"):
    assert any(line.startswith(words) for line in report["environment"]) and words in page, words
assert (report["device"], report["driver"], report["commit"]) == ("Stand-in X1", "1.2.3", "abc123"), report["device"]
assert report["clocks"] == {"sm_mhz": 1600.0, "watts": 300.5, "celsius": 50.0}, report["clocks"]
targets = {t["name"]: (t["measured"], t["met"]) for t in report["targets"]}
assert targets["SGEMM at 4096, share of cuBLAS float32"] == (0.96, True), targets
assert targets["HGEMM float16 at 4096, share of cuBLAS"] == (None, None), targets
assert targets["softmax, share of the copy's rate"] == (0.9, False), targets
assert targets["layer_norm, share of the copy's rate"] == (None, None), "a wrong row counts for no target"
assert targets["cnn 16-mixed, speed over 32-true"] == (4.0, True), targets
assert targets["cnn 16-mixed, activations' memory over 32-true"] == (0.6, False), targets
assert targets["gpt_blocks bf16-mixed, speed over 32-true"] == (None, None), targets
assert [m["test_accuracy"] for m in report["mnist"]] == ["0.8100", "0.8100", "0.1000"], report["mnist"]
assert all("missing" in r["peers"]["torch"] for r in report["rows"]), "stand-in figures beside a real PyTorch"
for words in ("- cublas (hgemm): it is not on this machine.", "Not reached in time: sort.", "4.0 TFLOP/s", "3 GB/s",
              "| cuda tests | failed |", "wrong (9.0)", "| pinned to device | 8.0 | 4.00 | right |",
              "| device to device | 8.0 | not measured | wrong |", "| 2 | 4.000 | 1.000e-03 | 4.00 | right |",
              "| 2 | 0.008 | not measured | not measured | right |", "| 2 | 5.000e-03 | 0.800 | right |", "- torch (", "cuBLAS's rates: not measured. no cuBLAS"):
    assert words in page, words + "\n" + page
PYTHON

# A person's notes become part of the report.
mkdir "$work/noted"
echo "the fan was loud" >"$work/logs/silicon/notes.txt"
python3 tools/silicon/report.py "$work/logs/silicon" --to "$work/noted" --commit c --date 2001-02-03 --limit 9
grep -qx -- "- the fan was loud" "$work"/noted/*.md || fail "the page lacks the note"

# ---- a part that hangs is stopped, and parts that do not fit are reported
stand_in "$package/bin/minimal" <<'FAKE'
exec sleep 60
FAKE
status=0
PATH=$work/gpu:$PATH bash "$package/on_device.sh" --out "$work/late" --seconds 17 --only minimal,bench,racecheck \
  >"$work/late.txt" || status=$?
[ "$status" = 1 ] || fail "a hanging part gave status $status, not 1"
grep -q '^minimal .*it exceeded its' "$work/late.txt" || fail "$(cat "$work/late.txt")"
grep -q '^racecheck .*left out .*the 17 seconds were used up' "$work/late.txt" || fail "$(cat "$work/late.txt")"
grep -q "| bench | left out |" "$work"/late/*.md || fail "the page does not say that bench was left out"
for title in "## Training steps" "## Copies and NCCL" "## Fashion-MNIST"; do # instead of a table without rows
  grep -A 2 "^$title" "$work"/late/*.md | grep -qx "Not measured\." || fail "$title: $(cat "$work"/late/*.md)"
done

# ---- without a GPU the script itself can be tried
bash "$package/on_device.sh" --dry-run --out "$work/dry" --only operations,bench,memcheck >"$work/dry.txt" || fail "$(cat "$work/dry.txt")"
for words in "^operations .*passed .*8 cases, 0 failed" "^bench .*passed" "^memcheck .*absent"; do
  grep -q "$words" "$work/dry.txt" || fail "the dry run does not say \"$words\": $(cat "$work/dry.txt")"
done
[ "$(ls "$work/dry")" = "$(printf '%s\n' "levin-emulator-$(date -u +%F)".{json,md} logs.tar.gz)" ] || fail "$(ls "$work/dry")"

# ---- cases.py alone: a case that hangs has failed, and cases that do not fit into the time are left out
stand_in "$work/hangs" <<'FAKE'
case "$*" in
  *--list-test-cases*-ts=*) ;;
  *--list-test-cases*) printf 'a\nb\nc\n' ;;
  *-tc=b*) echo "begins"; exec sleep 60 ;;
esac
FAKE
status=0
said=$(PATH=/usr/bin:/bin python3 tools/silicon/cases.py "$work/hangs" --out "$work/hung" --each 1 --jobs 2) || status=$?
[ "$status" = 1 ] && grep -qx "result: 3 cases, 1 failed, 0 left out" <<<"$said" || fail "$said"
grep -qx "failed: b (longer than 1 s)" <<<"$said" || fail "$said"
grep -qx "begins" "$work/hung/002_b.txt" || fail "what a hanging case said is lost"
grep -q "^==== CUDA_LAUNCH_BLOCKING=1" "$work/hung/002_b.txt" || fail "a hanging case is not repeated"
said=$(PATH=/usr/bin:/bin python3 tools/silicon/cases.py "$work/hangs" --out "$work/once" --each 1 --jobs 2 --once) && fail "$said"
grep -qx "result: 3 cases, 1 failed, 0 left out" <<<"$said" || fail "$said"
grep -qx "begins" "$work/once/002_b.txt" || fail "with --once, what a hanging case said is lost"
if grep -q "^====" "$work/once/002_b.txt"; then fail "with --once, a failed case is repeated"; fi
said=$(python3 tools/silicon/cases.py "$work/hangs" --out "$work/hung" --each 1 --seconds 0) && fail "$said"
grep -qx "result: 3 cases, 0 failed, 3 left out" <<<"$said" || fail "$said"

# ---- PyTorch's side, with a module in its place: cudnn.benchmark is on, and the faster layout of a convolution counts
mkdir "$work/torch"
cat >"$work/torch/torch.py" <<'PYTHON'
import types
__version__ = "stand-in"
contiguous_format, channels_last, float16, float32, uint8 = "contiguous_format", "channels_last", "f16", "f32", "u8"
clock, layout = 0.0, None
class Tensor:
    def to(self, memory_format):
        global layout
        layout = memory_format
        return self
    def fill_(self, value): pass
def make(*args, **options): return Tensor()
randn = empty = make
def conv2d(x, weight, padding):
    global clock
    assert backends.cudnn.benchmark is True
    clock += {"contiguous_format": 8.0, "channels_last": 2.0}[layout]
class Event:
    def __init__(self, enable_timing): pass
    def record(self): self.at = clock
    def elapsed_time(self, end): return (end.at - self.at) * 1e3
nn = types.SimpleNamespace(functional=types.SimpleNamespace(conv2d=conv2d))
cuda = types.SimpleNamespace(is_available=lambda: True, Event=Event, synchronize=lambda: None)
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(matmul=types.SimpleNamespace()), cudnn=types.SimpleNamespace())
PYTHON
python3 - >"$work/conv.jsonl" <<'PYTHON'
import json
for rung in ("direct", "tensor_cores"):
    print(json.dumps({"kind": "row", "family": "conv", "rung": rung, "dtype": "float16", "shape": "in=64", "ok": True, "seconds": 4.0,
                      "unit": "float16", "sizes": {"batch": 1, "in": 64, "out": 64, "side": 8, "kernel": 3}, "peers": {}}))
PYTHON
PYTHONPATH=$work/torch python3 tools/silicon/peer_torch.py "$work/conv.jsonl" --to "$work/pytorch.jsonl" >/dev/null
python3 - "$work/pytorch.jsonl" <<'PYTHON'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
assert [line["rung"] for line in lines] == ["direct", "tensor_cores"], lines
assert all(line["peers"] == {"torch": {"seconds": 2.0, "layout": "channels_last", "ratio": 0.5}} for line in lines), lines
PYTHON

# ---- the smaller dataset is complete
mkdir "$work/idx"
python3 tools/silicon/subset.py /usr/share/datasets/fashion-mnist "$work/idx" 300 100
python3 - "$work/idx" <<'PYTHON'
import gzip, pathlib, sys
source, folder = pathlib.Path("/usr/share/datasets/fashion-mnist"), pathlib.Path(sys.argv[1])
for name, count, head, item in (("train-images-idx3-ubyte.gz", 300, 16, 784), ("t10k-labels-idx1-ubyte.gz", 100, 8, 1)):
    small, whole = (gzip.decompress((f / name).read_bytes()) for f in (folder, source))
    assert len(small) == head + count * item and int.from_bytes(small[4:8], "big") == count, name
    assert small[:4] == whole[:4] and small[8:] == whole[8:len(small)], name
PYTHON

export LEVIN_XZ_PRESET=0 # the fastest

# ---- the package: stripped programs, the libraries that another system may lack, data, and a limit
mkdir "$work/bin"
for program in levin_cuda_tests levin_ops_tests levin_bench_cuda levin_bench_nccl mnist minimal; do
  cp "$build/bin/minimal" "$work/bin/$program"
done
bash tools/silicon/pack.sh "$work/bin" "$work/packed"
tar -C "$work" -xJf "$work/packed/levin-silicon.tar.xz" --one-top-level=unpacked
package=$work/unpacked/levin-silicon
mkdir "$work/by_python"
cp "$work/packed/levin-silicon.tar.xz" "$work/by_python/"
(cd "$work/by_python" && python3 -c 'import tarfile; tarfile.open("levin-silicon.tar.xz").extractall()')
diff -r "$package" "$work/by_python/levin-silicon" || fail "Python unpacks the package otherwise than tar"
[ -x "$work/by_python/levin-silicon/bin/minimal" ] || fail "unpacked by Python, the programs cannot be run"
reads=$(grep -rhoE 'source_dir\(\) / "[^"]+"' tests/ops tests/cuda tests/support tests/cases | sed 's/.*"\(.*\)"/source\/\1/')
reads+=" $(grep -rohE --include='*_test.cpp' '"(docs|tests)/[^"]+"' tests/cuda | tr -d '"' | sed 's/^/source\//')"
for file in on_device.sh cases.py report.py peer_torch.py commit data/train-images-idx3-ubyte.gz source/tests/pytorch $reads; do
  [ -e "$package/$file" ] || fail "the package lacks $file"
done
ls "$package"/lib/libfmt.so.* >/dev/null || fail "the package lacks libfmt"
for runtime in libc.so libstdc++.so; do
  if compgen -G "$package/lib/$runtime.*" >/dev/null; then fail "the package brings its own $runtime"; fi
done
[ "$(stat -c %s "$package/bin/minimal")" -lt "$(stat -c %s "$build/bin/minimal")" ] || fail "minimal is not stripped"
LD_LIBRARY_PATH=$package/lib "$package/bin/minimal" >/dev/null || fail "the packed program does not run"
bash tools/silicon/pack.sh "$work/bin" "$work/packed" | grep -q "^nothing has changed: " || fail "what is packed was packed again"
touch "$work/bin/minimal"
bash tools/silicon/pack.sh "$work/bin" "$work/packed" | grep -q "^packed: " || fail "a new program was not packed"
says "1000 are allowed" bash tools/silicon/pack.sh "$work/bin" "$work/packed" 1000
rm "$work/bin/mnist"
says "mnist was not built" bash tools/silicon/pack.sh "$work/bin" "$work/packed"
rm -rf "$work"
