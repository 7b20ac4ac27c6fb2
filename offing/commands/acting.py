"""Subcommands around a policy that acts: play, collect, sample, export, watch, explain."""

from __future__ import annotations

import os

from ..flags import Collect, Explain, Export, Play, Sample, Watch
from .terminal import keep_programs, learned_from, show


def play(command: Play) -> int:
    from ..online.play import play as run
    from ..online.play import summary, task_of
    from ..progress import Bar
    from ..report import results
    from ..report.jsonable import to_json
    from ..types import BadInput
    from ..value import policies

    keep_programs()
    if (command.folder is None) == (command.policy is None):
        raise BadInput("offing play: give the folder of a finished run or --policy, one of the two")
    earned = None
    if command.folder is None:
        task, width = task_of(command.env)
        policy = policies.resolve(str(command.policy), task, width, results.finished_policy)
    else:
        (policy, task), report = results.load_policy(command.folder), results.read_result(command.folder)
        earned = None if report is None else report.returns
    with Bar(not command.quiet, lines=True) as bar:
        played = run(policy, task, command.env, command.episodes, command.seed, command.sampled, bar)
    predicted = None if earned is None else {n: getattr(earned, n) for n in ("interval", "level", "median")}
    outcome = summary(played, predicted)
    if command.folder is not None:
        results.save_play(command.folder, outcome)
    true = outcome["return"]
    error = "" if true["stderr"] is None else f" ± {true['stderr']:,.1f}"
    words = f"{command.env}: realised return {true['mean']:,.1f}{error} over {command.episodes} episodes"
    if "predicted" in outcome:
        (low, high), where = outcome["predicted"]["interval"], "inside" if outcome["inside"] else "OUTSIDE"
        words += (
            f", {where} the predicted {outcome['predicted']['level']:.0%} interval {low:,.1f} … {high:,.1f} "
            f"(median {outcome['predicted']['median']:,.1f})"
        )
    show(command, bar, to_json(outcome), [], [words], 1)
    return 0


def collect(command: Collect) -> int:
    from ..door.common import writable
    from ..online.collect import collect as run
    from ..online.minari import check, save_minari
    from ..progress import Bar
    from ..report.store import save_columns
    from ..types import BadInput

    form = command.format or {".npz": "npz", "": "minari"}.get(command.out.suffix)
    if form is None or (form == "npz") != (command.out.suffix == ".npz"):
        raise BadInput(f"{command.out}: give a name that ends in .npz, or that of a folder for a Minari dataset")
    keep_programs()
    writable(command.out.parent)
    if form == "minari":
        check(command.out)
    request = (command.policy, command.steps, command.noise, command.horizon)
    with Bar(lines=True) as bar:
        columns = run(command.kind, command.rows, command.seed, bar, *request)
    if form == "minari":
        save_minari(command.out, columns, command.kind, command.policy)
    else:
        save_columns(command.out, columns)
    ended, cut = int(columns["terminated"].sum()), int(columns["truncated"].sum())
    print(f"{command.out}: {command.rows:,} rows, {ended + cut:,} episodes ({ended:,} ended, {cut:,} timed out)")
    return 0


def sample(command: Sample) -> int:
    from ..data import sample_file
    from ..door.common import writable
    from ..report.store import write

    path, content = sample_file(command.name, command.out)
    writable(path.parent)
    write(path, content)
    print(f"{path}: written; `offing inspect {path}` says what is in it")
    return 0


def export(command: Export) -> int:
    from ..door.common import writable
    from ..ship.export import export as run

    if command.to == "mlflow":
        from ..ship.tracked import log_run

        print(log_run(command.folder))
        return 0
    if command.out is not None:
        writable(command.out)
    print(*run(command.folder, command.to, command.out), sep="\n")
    return 0


def watch(command: Watch) -> int:
    from ..data import load
    from ..door.common import writable
    from ..watch.earning import EXIT
    from ..watch.page import save
    from ..watch.watch import Watch as Watching

    keep_programs()
    out = command.folder if command.out is None else command.out
    writable(out)
    watching = Watching.of(command.folder, learned_from(command))
    root = os.environ.get("MINARI_DATASETS_PATH")
    result = watching.update(load(command.data, schema=command.schema, root=root))
    files = save(out, result, command.data)
    print(*result.sentences(), files[1], sep="\n")
    return EXIT[result.word]


def explain(command: Explain) -> int:
    from ..door.common import writable
    from ..door.folder import read_finished
    from ..explain.page import PAGE, attach
    from ..report.results import PAGE as REPORT

    keep_programs()
    writable(command.folder)
    result, log = read_finished(command.folder), learned_from(command)
    explained = result.explain(log)
    attach(command.folder, REPORT, explained, log.name, result.run)
    print(*explained.sentences(), command.folder / PAGE, sep="\n")
    return 0
