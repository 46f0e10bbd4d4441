# Trains the sample programs as `./run NAME` does, one after the other, and checks their results against the goals of
# docs/models.md. ./run test --full calls it; on two cores it takes about an hour. usage: models.sh [NAME...]
. tests/scripts/lib.sh

# name | options | key of the result | lowest and highest value | most seconds, "-" for no limit
goals='
translate   |                          | exact         | 0.99  1.0  | -
lstm        |                          | nrmse         | 0.0   0.05 | -
lstm        | --task language          | val_loss      | 0.0   1.7  | -
vae         |                          | test_loss     | 200   248  | -
recommender |                          | auc           | 0.93  1.0  | -
graph       |                          | accuracy      | 0.95  1.0  | -
dqn         |                          | return        | 475   500  | -
vit         |                          | test_accuracy | 0.9   1.0  | -
ddpm        |                          | val_loss      | 0.0   0.05 | -
speech      |                          | accuracy      | 0.97  1.0  | -
gpt         |                          | val_loss      | 0.5   1.75 | 130
detect      |                          | map           | 0.9   1.0  | 600
resnet      |                          | test_accuracy | 0.92  1.0  | 900
'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missed=()
while IFS='|' read -r name options key range seconds; do
  name=${name// /} key=${key// /} seconds=${seconds// /}
  [ -n "$name" ] && { [ $# = 0 ] || [[ " $* " = *" $name "* ]]; } || continue
  begin=$SECONDS
  # shellcheck disable=SC2086 # options are words
  ./run "$name" $options --default-root-dir "$work/$name" --enable-progress-bar false >"$work/out" 2>&1 ||
    { tail -n 20 "$work/out"; fail "$name ended with an error"; }
  result=$(grep '^result: ' "$work/out" | tail -n 1)
  took=$((SECONDS - begin))
  echo "$name $options: $result ($took s)"
  read -r least most <<<"$range"
  value=$(sed -n "s/.*[ :]$key=\([^ ]*\).*/\1/p" <<<"$result")
  awk -v v="${value:-nan}" -v a="$least" -v b="$most" 'BEGIN { exit !(v + 0 == v && v >= a && v <= b) }' ||
    missed+=("$name: $key is $value instead of $least to $most")
  [ "$seconds" = - ] || [ "$took" -le "$seconds" ] || missed+=("$name took $took s instead of $seconds")
done <<<"$goals"
[ ${#missed[@]} = 0 ] || fail "$(printf '%s; ' "${missed[@]}")"
