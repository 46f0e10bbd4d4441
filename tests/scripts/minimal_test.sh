# examples/minimal is 10 MiB or less stripped, and loads only what levin::tensor needs.
. tests/scripts/lib.sh
program=$build/bin/minimal
limit=$((10 * 1024 * 1024))

strip -o "$program.stripped" "$program"
size=$(stat -c %s "$program.stripped")
rm "$program.stripped"
echo "stripped size: $size bytes"
[ "$size" -le "$limit" ] || fail "minimal has $size bytes stripped; $limit are allowed"

needed=$(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
echo "needs:" $needed
allowed='^(libc\.so\.6|libm\.so\.6|libstdc\+\+\.so\.6|libgcc_s\.so\.1|libgomp\.so\.1|libhwy\.so\.1|libfmt\.so\.9)$'
strange=$(grep -vE "$allowed" <<<"$needed" || true)
[ -z "$strange" ] || fail "minimal also loads" $strange
