# ./run silicon: its sentences where something is missing, and what on_device.sh makes of programs that pass, fail, hang
# or are not there. The programs are stand-ins, so no figure here says anything of a GPU.
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
# says WORDS COMMAND...: status 1, one line on stderr that holds the words.
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
cp tools/silicon/on_device.sh tools/silicon/report.py tools/silicon/peer_torch.py "$package/"
echo abc123 >"$package/commit"
says "no NVIDIA GPU was found here" env PATH="$work/tools" bash "$package/on_device.sh" --out "$work/none"

python3 - >"$work/bench.json" <<'PYTHON'
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
print(json.dumps({"machine": {"copy_bytes_a_second": 3e12, "copy_noise": 0.001, "library_flops_a_second": {},
                              "library_missing": "no cuBLAS"},
                  "rows": rows, "training": training, "left_out": ["sort"]}))
PYTHON
stand_in "$package/bin/levin_ops_tests" <<'FAKE'
echo "[doctest] test cases:  1 |  1 passed | 0 failed | 9 skipped"
[ -d "$LEVIN_SOURCE_DIR" ] || [ -n "$LEVIN_SOURCE_DIR" ]
FAKE
stand_in "$package/bin/levin_cuda_tests" <<'FAKE'
echo "[doctest] test cases: 80 | 79 passed | 1 failed | 0 skipped"
exit 1
FAKE
stand_in "$package/bin/levin_bench_cuda" <<FAKE
if [ "\$1" = --json ]; then cp "$work/bench.json" "\$2"; fi
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
echo fine
FAKE
stand_in "$work/gpu/compute-sanitizer" <<'FAKE'
if [ "$2" = racecheck ]; then echo "RACECHECK SUMMARY: 1 hazard"; exit 9; fi
[ "$LEVIN_CUDA_CACHING" = 0 ] && echo "ERROR SUMMARY: 0 errors"
FAKE

status=0
PATH=$work/gpu:$PATH bash "$package/on_device.sh" --out "$work/out" || status=$?
[ "$status" = 1 ] || fail "a failed part gave status $status, not 1"
report=$work/out/report/stand-in-x1-$(date -u +%F)
python3 - "$report" <<'PYTHON'
import json, sys
report = json.load(open(sys.argv[1] + ".json"))
page = open(sys.argv[1] + ".md").read()
parts = {p["name"]: p for p in report["parts"]}
expected = {"operations": "passed", "cuda tests": "failed", "bench check": "passed", "minimal": "passed",
            "nccl": "passed",
            "mnist 32-true": "passed", "mnist 16-mixed": "passed", "mnist bf16-mixed": "passed",
            "mnist bf16-mixed accuracy": "failed", "bench": "passed", "pytorch": "passed", "memcheck": "passed",
            "racecheck": "failed"}
assert {n: p["status"] for n, p in parts.items()} == expected, parts
assert "79 passed | 1 failed" in parts["cuda tests"]["detail"], parts
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

# ---- a part that hangs is stopped, and what does not fit is said
stand_in "$package/bin/levin_ops_tests" <<'FAKE'
exec sleep 60
FAKE
status=0
PATH=$work/gpu:$PATH bash "$package/on_device.sh" --out "$work/late" --seconds 22 >/dev/null || status=$?
[ "$status" = 1 ] || fail "a hanging part gave status $status, not 1"
parts=$(cat "$work/late/parts.tsv")
grep -q '^operations	failed	.*it ran past its' <<<"$parts" || fail "$parts"
grep -q '^racecheck	left out	0	the 22 seconds were used up' <<<"$parts" || fail "$parts"
grep -q "| bench | left out |" "$work"/late/report/*.md || fail "the page does not say that bench was left out"

# ---- the smaller data set is a whole one
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

# ---- the package: stripped programs, the libraries that another system may lack, data, and a limit
mkdir "$work/bin"
for program in levin_cuda_tests levin_ops_tests levin_bench_cuda levin_bench_nccl mnist minimal; do
  cp "$build/bin/minimal" "$work/bin/$program"
done
bash tools/silicon/pack.sh "$work/bin" "$work/packed"
tar -C "$work" -xJf "$work/packed/levin-silicon.tar.xz" --one-top-level=unpacked
package=$work/unpacked/levin-silicon
for file in on_device.sh report.py peer_torch.py commit data/train-images-idx3-ubyte.gz source/tests/pytorch; do
  [ -e "$package/$file" ] || fail "the package lacks $file"
done
ls "$package"/lib/libhwy.so.* >/dev/null || fail "the package lacks libhwy"
for runtime in libc.so libstdc++.so; do
  if compgen -G "$package/lib/$runtime.*" >/dev/null; then fail "the package brings its own $runtime"; fi
done
[ "$(stat -c %s "$package/bin/minimal")" -lt "$(stat -c %s "$build/bin/minimal")" ] || fail "minimal is not stripped"
LD_LIBRARY_PATH=$package/lib "$package/bin/minimal" >/dev/null || fail "the packed program does not run"
says "1000 are allowed" bash tools/silicon/pack.sh "$work/bin" "$work/packed" 1000
rm "$work/bin/mnist"
says "mnist was not built" bash tools/silicon/pack.sh "$work/bin" "$work/packed"
rm -rf "$work"
