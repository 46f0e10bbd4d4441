# tools/levin-slurm with stand-ins for SLURM's programs, which come first on the PATH.
. tests/scripts/lib.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
slurm=$PWD/tools/levin-slurm

# A stand-in records its arguments, one per line, and runs its text.
stand_in() { # NAME TEXT
  mkdir -p "$work/bin"
  { echo '#!/bin/bash'; echo "printf '%s\\n' \"\$@\" >>$work/$1.calls"; echo "$2"; } >"$work/bin/$1"
  chmod +x "$work/bin/$1"
}
says() { # FILE LINE...: each line is in the file
  local file=$1 line
  shift
  for line in "$@"; do grep -qxF -- "$line" "$file" || fail "$file lacks \"$line\": $(cat "$file")"; done
}
refused() { # STATUS WORDS COMMAND...: ends so, with one line on stderr that has the words
  local status=0 said want=$1 words=$2
  shift 2
  said=$("$@" 2>&1 >/dev/null) || status=$?
  [ "$status" = "$want" ] || fail "$* ended with $status, not $want"
  [ "$(wc -l <<<"$said")" = 1 ] && [[ $said == "error: "*"$words"* ]] || fail "$* said: $said"
}
export PATH=$work/bin:$PATH

# Without SLURM.
refused 1 "sbatch was not found" "$slurm" --folder "$work/none" true
[ ! -e "$work/none" ] || fail "a script was written although nothing can take it"

# The submitted script.
stand_in sbatch 'echo "4711;cluster"'
printf '#!/bin/bash\nprintf "%%s " "$@" $SLURM_PROCID $MASTER_ADDR:$MASTER_PORT $OMP_NUM_THREADS; echo\n' >"$work/my prog"
chmod +x "$work/my prog"
said=$(cd "$work" && "$slurm" --nodes 2 --devices=3 --cpus 5 --time 1-12 --signal-before 300 --name net.1 --folder out \
  --sbatch --partition=gpu --sbatch=--mem=8G -- "./my prog" --strategy ddp "two words" '$HOME' '')
script=$work/out/net.1.sbatch
[ "$said" = "job 4711: $script, output in $work/out/net.1-4711.out" ] || fail "it said: $said"
says "$work/sbatch.calls" --parsable "$script"
says "$script" '#!/bin/bash' '#SBATCH --job-name=net.1' '#SBATCH --nodes=2' '#SBATCH --ntasks-per-node=3' \
  '#SBATCH --cpus-per-task=5' '#SBATCH --gpus-per-node=3' '#SBATCH --time=1-12' '#SBATCH --signal=USR1@300' \
  '#SBATCH --requeue' '#SBATCH --open-mode=append' "#SBATCH --output=$work/out/net.1-%j.out" \
  '#SBATCH --partition=gpu' '#SBATCH --mem=8G'
[ "$(ls "$work/out")" = net.1.sbatch ] || fail "files were left over: $(ls "$work/out")"
bash -n "$script" || fail "the script is no bash"

# The job's commands: every task gets the first host, a port from the job's number, and its arguments unchanged.
stand_in scontrol '[ "$*" = "show hostnames n[07-08]" ] && printf "n07\nn08\n"'
stand_in srun 'shift; for r in 0 1; do SLURM_PROCID=$r "$@"; done'
export SLURM_JOB_ID=20034711 SLURM_JOB_NODELIST='n[07-08]' SLURM_CPUS_PER_TASK=5
ran=$(cd / && env -u OMP_NUM_THREADS bash "$script")
[ "$ran" = "--strategy ddp two words \$HOME  0 n07:19711 5 
--strategy ddp two words \$HOME  1 n07:19711 5 " ] || fail "the job printed: $ran"
says "$work/srun.calls" --kill-on-bad-exit=1 "two words" '$HOME'
stand_in srun 'exit 7'
status=0
bash "$script" || status=$?
[ "$status" = 7 ] || fail "the job ended with $status where srun ended with 7"

# A dry run submits nothing; the CPU asks for no GPU; a job is never called bash, which SLURM calls interactive ones.
rm "$work/sbatch.calls"
"$slurm" --dry-run --accelerator cpu --folder "$work/dry" bash -c true >"$work/printed"
cmp "$work/printed" "$work/dry/job.sbatch"
if grep -q gpus "$work/printed"; then fail "a job on the CPU asks for GPUs"; fi
says "$work/printed" '#SBATCH --job-name=job' '#SBATCH --nodes=1' '#SBATCH --time=1:00:00' '#SBATCH --signal=USR1@120'
[ ! -e "$work/sbatch.calls" ] || fail "a dry run submitted something"
"$slurm" --help | grep -q '^usage: ' || fail "--help prints no usage"

# Misuse, and an sbatch that fails.
refused 2 "there is no program" "$slurm"
refused 2 "--nodes 0: give a whole number" "$slurm" --nodes 0 true
refused 2 "--devices two: give a whole number" "$slurm" --devices two true
refused 2 "--time soon" "$slurm" --time soon true
refused 2 "--accelerator tpu: give cuda or cpu" "$slurm" --accelerator tpu true
refused 2 "--name a/b" "$slurm" --name a/b true
refused 2 "--gpus is not an option" "$slurm" --gpus 2 true
refused 2 "--nodes needs a value" "$slurm" --nodes
refused 2 "--sbatch partition=gpu" "$slurm" --sbatch partition=gpu true
refused 2 "nowhere: there is no such program" "$slurm" nowhere
refused 2 "SLURM takes no spaces" "$slurm" --folder "$work/a b" true
stand_in sbatch 'exit 1'
refused 1 "sbatch rejected" "$slurm" --folder "$work/out" true
stand_in sbatch 'echo hello'
refused 1 "sbatch gave no job number" "$slurm" --folder "$work/out" true
