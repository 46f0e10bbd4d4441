# Films of kernels play in headless Chromium at desktop and phone widths.
. tests/scripts/lib.sh
(. tools/lib.sh; need $packages_docs) || { echo "SKIP: network"; exit 0; }
work=$build/films
mkdir -p "$work"
"$build/bin/levin_film" transpose/02_shared_tile "$work/conflicts.html" >/dev/null
"$build/bin/levin_film" tour/block_sums_without_barriers "$work/races.html" >/dev/null
python3 tests/look/check_film.py "$work/conflicts.html" "$work/races.html"

status=0
"$build/bin/levin_film" reduce/nothing "$work/none.html" 2>"$work/message" || status=$?
[ "$status" = 1 ] && grep -q "there is no kernel reduce/nothing; choose one of: reduce/01_interleaved" "$work/message" ||
  fail "an unknown kernel gives status $status and: $(cat "$work/message")"
