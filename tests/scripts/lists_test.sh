# The lists of classes and operations in the guides are those of the headers.
. tests/scripts/lib.sh
python3 tools/api_lists.py --check || fail "the lists of the guides are not current"
