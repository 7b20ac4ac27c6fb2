#!/usr/bin/env bash
# `offing sorel` as a user has it, at --scale large on one GPU: on Brax logs, and on the suite's logs of 20,000 rows.
#
#   experiments/large.sh collect LOGS TASK...            Brax's full-replay logs of a million rows, side by side
#   experiments/large.sh plan LOGS OUT TASK:ROWS:SEED... runs side by side; each leaves OUT/TASK-ROWS-SEED and says its time
#   experiments/large.sh samples OUT                     offing:pendulum and offing:cartpole, cold and then warm
#   experiments/large.sh play OUT                        every finished run in its true environment (a CPU will do)
#
# PYTHON names the interpreter, SCALE another scale. What is finished is not run again.
set -u
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}; scale=${SCALE:-large}
export PYTHONUNBUFFERED=1 XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONPATH=${PYTHONPATH:-.}
offing() { $python -m offing "$@"; }
what=${1:?collect, plan, samples or play}; shift

timed() { # NAME COMMAND...: runs it, and says how long it took
  local name=$1 began=$SECONDS; shift
  "$@"; local code=$?
  echo "$name: exit $code, $((SECONDS - began)) s"
}
case $what in
collect)
  logs=${1:?LOGS}; shift; mkdir -p "$logs"
  for task in "$@"; do
    [ -e "$logs/$task.npz" ] || timed "collect $task" offing collect "brax-$task-full-replay" --rows "${ROWS:-1000000}" \
      --seed 0 --out "$logs/$task.npz" &> "$logs/$task.log" &
  done; wait; tail -qn1 "$logs"/*.log
  ;;
plan)
  logs=${1:?LOGS} out=${2:?OUT}; shift 2; mkdir -p "$out"
  for point in "$@"; do
    IFS=: read -r task rows seed <<< "$point"; name=$task-$rows-$seed
    timed "$name" offing sorel "$logs/$task.npz" --rows "$rows" --seed "$seed" --scale "$scale" --timings \
      --out "$out/$name" &> "$out/$name.log" &
  done; wait; tail -qn1 "$out"/*.log
  ;;
samples)
  out=${1:?OUT}; mkdir -p "$out"
  for task in pendulum cartpole; do
    for state in cold warm; do
      export JAX_COMPILATION_CACHE_DIR=$out/cache-$task
      timed "$task $state" offing sorel "offing:$task" --scale "$scale" --timings --fresh --out "$out/$task-$scale" \
        &> "$out/$task-$scale-$state.log"
      tail -n1 "$out/$task-$scale-$state.log"
    done
  done
  ;;
play)
  out=${1:?OUT}
  for run in "$out"/*/result.json; do
    run=${run%/result.json}; name=${run##*/}; env=${name%%-*}
    case $env in halfcheetah|hopper|walker2d) env=brax-$env;; esac
    [ -e "$run/play.json" ] || offing play "$run" --env "$env" --episodes "${EPISODES:-128}" --quiet
  done
  ;;
*) echo "$what: collect, plan, samples or play" >&2; exit 2 ;;
esac
