# A program of C99 and a script of Python use the shared library, which shows only the functions of its header; a program
# that links the static libraries does the same.
. tests/scripts/lib.sh
ninja -C "$build" levin_c_shared levin_c_api_tests >/dev/null
install_to_stage
work=$build/c_api_clients # the tests write the network there
"$build/bin/levin_c_api_tests" -tc="the files of the clients" >/dev/null
library=$(dirname "$libdir")/liblevin_c.so

gcc -std=c99 -Wall -Wextra -Werror -pedantic -I"$stage/include" tests/c_api/client.c -o "$work/client" \
  -L"$(dirname "$library")" -llevin_c -lm -Wl,-rpath,"$(dirname "$library")"
"$work/client" "$work"
/usr/bin/python3 tests/c_api/client.py "$library" "$work"

# The programs of docs/c_api.md.
awk '/^```c$/ { on = 1; next } /^```$/ { on = 0 } on' docs/c_api.md >"$work/page.c"
awk '/^```python$/ { on = 1; next } /^```$/ { on = 0 } on' docs/c_api.md >"$work/page.py"
gcc -std=c99 -Wall -Wextra -Werror -pedantic -I"$stage/include" "$work/page.c" -o "$work/page" \
  -L"$(dirname "$library")" -llevin_c -Wl,-rpath,"$(dirname "$library")"
(cd "$work" && ./page) | tee "$work/page.txt"
awk '$1 == "loss:" && $2 < 0.4 { fell = 1 } END { exit !fell }' "$work/page.txt" || fail "the page's program did not learn"
(cd "$work" && LD_LIBRARY_PATH=$(dirname "$library") /usr/bin/python3 page.py)

shown=$(nm -D --defined-only "$library" | awk '{ print $3 }' | grep -v '^$' | sort)
wanted=$(grep -o 'levin_[a-z_]*(' "$stage/include/levin/c_api/levin.h" | tr -d '(' | sort -u)
[ "$shown" = "$wanted" ] || fail "the shared library shows other symbols than its header:
$(diff <(echo "$wanted") <(echo "$shown") || true)"
strip -o "$library.stripped" "$library"
size=$(stat -c %s "$library.stripped")
rm "$library.stripped"
echo "stripped: $size bytes"
