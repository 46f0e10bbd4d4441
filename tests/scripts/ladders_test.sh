# docs/ladders.md matches the rungs' headers and the newest report, and a change of either is detected.
. tests/scripts/lib.sh
python3 tools/silicon/tables.py --check || fail "docs/ladders.md is not up to date"

work=$build/ladders_test
fresh_copy() {
  rm -rf "$work"
  mkdir -p "$work/docs/silicon"
  cp docs/ladders.md "$work/docs/"
  for folder in kernels/cuda/*/; do
    mkdir -p "$work/$folder"
    cp "$folder"*.cuh "$work/$folder" 2>/dev/null || true
  done
}
tables() { python3 tools/silicon/tables.py --root "$work" "$@"; }
expect_red() { # WHAT WORDS
  local said
  if said=$(tables --check 2>&1); then fail "$1 went unnoticed"; fi
  grep -q "$2" <<<"$said" || fail "$1: $said"
}

fresh_copy
rm -rf "$work/docs/silicon"
mkdir "$work/docs/silicon"
tables
mv "$work/kernels/cuda/sgemm/05_register_tile.cuh" "$work/kernels/cuda/sgemm/05_square.cuh"
expect_red "a renamed rung" "not up to date"
fresh_copy
sed 's/Rung 4/Rung 5/' "$work/kernels/cuda/transpose/04_packed.cuh" >"$work/kernels/cuda/transpose/05_new.cuh"
expect_red "a new rung" "not up to date"
fresh_copy
sed -i 's/^\/\/ Idea: the definition\./\/\/ Idea: something else./' "$work/kernels/cuda/sgemm/01_naive.cuh"
expect_red "a changed idea" "not up to date"
fresh_copy
sed -i 's/Bound:/Limit:/' "$work/kernels/cuda/reduce/02_sequential.cuh"
expect_red "a rung without its bound" "does not give its idea and its bound"
fresh_copy
mkdir "$work/kernels/cuda/unknown"
cp "$work/kernels/cuda/sgemm/01_naive.cuh" "$work/kernels/cuda/unknown/"
expect_red "a ladder without a table" "does not know"

# ---- a report fills the cells of its rungs, and the newest one counts
fresh_copy
python3 - "$work/docs/silicon" <<'PYTHON'
import json, sys
def write(date, seconds):
    square = {"m": 4096, "n": 4096, "k": 4096}
    row = {"family": "sgemm", "dtype": "float32", "sizes": square, "shape": "m=4096 n=4096 k=4096", "ok": True,
           "unit": "f32", "seconds": seconds, "bytes": 1e9, "flops": 3e12}
    rows = [{**row, "rung": "async_stages", "peers": {"cublas": {"ratio": 0.97}}},
            {**row, "rung": "tf32", "seconds": seconds / 3, "peers": {}},
            {**row, "rung": "shared_tile", "seconds": 40 * seconds, "peers": {}},
            {**row, "rung": "naive", "peers": {"cublas": {"missing": "not here."}}},
            {**row, "rung": "coalesced", "ok": False, "peers": {}},
            {**row, "family": "softmax", "rung": "06_warp_a_row", "sizes": {"rows": 9, "columns": 512},
             "shape": "rows=9 columns=512", "unit": "memory", "peers": {"memcpy": {"ratio": 0.9}}}]
    report = {"device": "Stand-in X1", "date": date, "rows": rows}
    open(f"{sys.argv[1]}/stand-in-{date}.json", "w").write(json.dumps(report))
write("2026-01-02", 2.0)
write("2025-12-31", 5.0)
PYTHON
expect_red "a new report" "not up to date"
tables
page=$work/docs/ladders.md
grep -q '^Stand-in X1, 2026-01-02: ' "$page" || fail "the page does not name the newest report"
grep -q '08_async_stages.*| 1.5 TFLOP/s | 40 | 0.97 |$' "$page" || fail "$(grep async_stages "$page")"
grep -q 'sgemm/01_naive.*| 1.5 TFLOP/s | - | no cuBLAS: not here. |$' "$page" || fail "$(grep sgemm/01_naive "$page")"
grep -q 'sgemm/02_coalesced.*| not yet measured | - | - |$' "$page" || fail "a wrong row's figure is shown"
grep -q 'sgemm/09_tf32.*| 4.5 TFLOP/s | 3.00 | no cuBLAS: no row |$' "$page" || fail "$(grep sgemm/09_tf32 "$page")"
grep -q '06_warp_a_row.*| 0 GB/s (float32, rows=9 columns=512) | - | 0.90 |$' "$page" || fail "$(grep 06_warp "$page")"
tables --check
