#!/usr/bin/env bash
# What the docs say of Brax, on one GPU: points, sweeps and judges as processes that share it.
#
#   experiments/brax.sh plan LOGS OUT         needs LOGS/{halfcheetah,hopper,walker2d}.npz and no simulator; goes on
#                                             where it was, but a process that is killed while it shares the GPU breaks
#                                             it for the others
#   JAX_PLATFORMS=cpu experiments/brax.sh play OUT     two tasks at a time
#   experiments/brax.sh gather OUT            into results/, in place of what is there
#
# The logs: offing collect brax-hopper-full-replay --rows 1000000 --seed 0 --out LOGS/hopper.npz, and so on. PYTHON names
# the interpreter; TASKS="hopper" SCALE=smoke tries it out; SWEEPS="rebrac mopo morel" adds those.
set -u
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
what=${1:?plan, play or gather}; shift
if [ "$what" = plan ]; then logs=$(realpath "${1:?LOGS}"); shift; fi
out=$(realpath -m "${1:?OUT}")
tasks=${TASKS:-hopper halfcheetah walker2d}
scale=${SCALE:+--scale $SCALE}
mkdir -p "$out/policies"
cd "$here"

# a record exists when it is whole, so each of these may be run again
points() { # TASK NAME ROWS:SEED...
  local task=$1 name=$2; shift 2
  $python value_against_rows.py --suite brax --task "$task" --points "$@" --phase plan --logs "$logs" $scale \
    --work "$out/work" --policies "$out/policies" --out "$out/points-$task-$name.json" &>> "$out/points-$task-$name.log"
}
sweep() { # TASK PLANNER SEEDS
  until grep -qs ": worlds " "$out/points-$1-a.log"; do sleep 1; done  # they are shared
  $python tuned_offline.py --suite brax --task "$1" --planners "$2" --seeds "$3" --phase plan --logs "$logs" $scale \
    --work "$out/work" --policies "$out/policies" --out "$out/sweep-$1-$2.json" &>> "$out/sweep-$1-$2.log"
}
judge() { # TASK NAME plans|sweeps FILE: what a file's policies are worth, by all methods
  $python judge_policies.py --suite brax --task "$1" --phase judge --logs "$logs" $scale --work "$out/work" \
    --policies "$out/policies" --plans "$out/none.json" --sweeps "$out/none.json" "--$3" "$out/$4" \
    --out "$out/judged-$1-$2.json" &>> "$out/judged-$1-$2.log"
}

case $what in
plan)
  echo '[]' > "$out/none.json"
  export XLA_PYTHON_CLIENT_PREALLOCATE=false PYTHONUNBUFFERED=1
  export JAX_COMPILATION_CACHE_DIR=${JAX_COMPILATION_CACHE_DIR:-$out/cache} PYTHONPATH=${PYTHONPATH:-$here/..}
  if command -v nvidia-cuda-mps-control > /dev/null; then
    export CUDA_MPS_PIPE_DIRECTORY=$out/mps CUDA_MPS_LOG_DIRECTORY=$out/mps
    mkdir -p "$out/mps"; pgrep -x nvidia-cuda-mps > /dev/null || nvidia-cuda-mps-control -d
  fi
  for task in $tasks; do
    (points $task a 200000:0; [ $task = walker2d ] || judge $task sorel plans points-$task-a.json) &
    (sleep 45; points $task b 200000:1 50000:0) &  # by then most programs are compiled
    (sleep 45; points $task c 200000:2 500000:0 20000:0) &
  done
  for task in ${tasks/walker2d/}; do (sweep $task iql 3; judge $task iql sweeps sweep-$task-iql.json) & done
  (for planner in ${SWEEPS:-}; do for task in $tasks; do sweep $task $planner 1; done; done) &
  wait
  ;;
play)
  play() { # TASK: everything of it
    for file in "$out"/points-$1-?.json; do
      $python value_against_rows.py --suite brax --task $1 --phase play --episodes 64 --policies "$out/policies" --out "$file" --quiet
    done
    for file in "$out"/sweep-$1-*.json; do
      [ -f "$file" ] && $python tuned_offline.py --suite brax --phase play --policies "$out/policies" --out "$file" --quiet
    done
    [ $1 = walker2d ] || for kind in plans:points-$1-a sweeps:sweep-$1-iql; do
      $python judge_policies.py --suite brax --task $1 --phase play --policies "$out/policies" --plans "$out/none.json" \
        --sweeps "$out/none.json" --${kind%%:*} "$out/${kind##*:}.json" --truths "$out/truths-$1.json" --quiet
    done
  }
  for task in $tasks; do play $task & [ $task = hopper ] || wait; done; wait
  ;;
gather)
  $python gather.py "$out"
  ;;
*) echo "$what: plan, play or gather" >&2; exit 2 ;;
esac
