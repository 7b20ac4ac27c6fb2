"""The walls of the house, read off the source: who imports whom, and who may touch the world outside.

Nothing is imported and nothing is run; every file under `offing/` is covered, those to come included.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
GROUND = ("types", "version", "wording", "registry", "hypers", "nets", "optim", "trees", "compiling")
ROOMS = {"data": 1, "posterior": 2, "pil": 3, "planner": 4, "value": 4, "tune": 5, "report": 6}
COMMAND_LINE = ("__main__", "commands")  # may import all, print, and read the clock and the environment
ROOMS |= {"ship": 7, "watch": 7, "explain": 7, "flags": 8, "progress": 7, "door": 8}
SIMULATORS = {"gymnax", "gymnasium", "gym", "brax", "mujoco", "mujoco_mjx", "minari", "d4rl", "dm_control"}
PICKLES = {"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"}
CLOCKS = {"time", "timeit"}
ENVIRON = {"environ", "environb", "getenv", "putenv", "unsetenv"}
OPENERS = {"open", "read_text", "write_text", "read_bytes", "write_bytes"}
ARRAY_FILES = {
    "load",
    "save",
    "savez",
    "savez_compressed",
    "loadtxt",
    "savetxt",
    "genfromtxt",
    "memmap",
    "fromfile",
}
FORMATS = {"h5py", "pyarrow", "zipfile"}


class Import(NamedTuple):
    """One name that a file imports: where, what, and whether only once a function runs."""

    line: int
    name: str
    lazy: bool


def imports(tree: ast.AST, package: str) -> Iterator[Import]:
    """Every module that the file imports, as an absolute dotted name; `from a import b` gives a.b."""

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name, lazy)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            module = ".".join(filter(None, (base, node.module)))
            for alias in node.names:
                yield Import(node.lineno, f"{module}.{alias.name}", lazy)
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__") and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                name = package + first.value if first.value.startswith(".") else first.value
                yield Import(node.lineno, name, lazy)
        inside = lazy or isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inside)

    return visit(tree, False)


def called(call: ast.Call) -> str:
    """The last part of the name that is called: `c` of `a.b.c()`."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def owner(node: ast.AST) -> str:
    """The name before the last dot: `b` of `a.b.c`."""
    value = getattr(node, "value", None)
    return value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")


def alias_of(tree: ast.AST, module: str) -> set[str]:
    """Other names that the file gives the module: `np` for numpy."""
    aliases = [a for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    return {alias.asname for alias in aliases if alias.name == module and alias.asname}


def room_of(parts: tuple[str, ...]) -> str:
    """The room that a dotted name under `offing` belongs to; "" for the front door itself."""
    return parts[1] if len(parts) > 1 else ""


def forbidden(room: str, found: Import) -> str | None:
    """Why `room` may not import this name, if so."""
    parts = tuple(found.name.split("."))
    if parts[0] != "offing":
        if parts[0] in SIMULATORS and room != "online":
            in_source = parts[0] == "minari" and room == "data/sources" and found.lazy
            return None if in_source else f"imports {parts[0]}, a simulator's package"
        if parts[0] in PICKLES:
            return f"imports {parts[0]}"
        if room not in (*COMMAND_LINE, "progress"):
            if parts[0] in CLOCKS:
                return f"imports {parts[0]}, a clock"
            if parts[0] == "os" and parts[-1] in ENVIRON:
                return f"imports os.{parts[-1]}"
        if room == "runtime" and parts[0] in ("jax", "jaxlib", "optax"):
            return f"imports {parts[0]}; the runtime is numpy only"
        return None
    room, target = room.split("/")[0], room_of(parts)
    if target in (room, "__version__"):
        return None
    if target == "online":
        if room in COMMAND_LINE:
            return None if found.lazy else "imports offing.online at the top; only inside a function"
        return "imports offing.online, which is behind the wall"
    if target in COMMAND_LINE:
        return None if room == "__main__" else "imports the command line"
    if room == "runtime":
        return f"imports offing.{target}; the runtime imports no room"
    if room in ("", *COMMAND_LINE, "online"):
        return None
    if target not in (*GROUND, *ROOMS, "runtime"):
        return f"imports offing{'.' + target if target else ''}, which comes after it"
    if target == "runtime":
        return None if room == "report" else "imports offing.runtime"
    if room in GROUND:
        return None if target in GROUND else f"imports offing.{target}; the ground floor imports no room"
    if target in GROUND or ROOMS[target] < ROOMS[room]:
        return None
    return f"imports offing.{target}, which does not come before it"


def touches(where: str, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """What the file does to the world outside: files, printing, clocks, environment variables, pickle."""
    below = not where.startswith(("offing/__main__.py", "offing/progress.py", "offing/commands/"))
    may_open = where.startswith("offing/data/sources/") or where == "offing/report/store.py"
    numpy = {"numpy", *alias_of(tree, "numpy"), *alias_of(tree, "jax.numpy")}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)) and not may_open:
            module = getattr(node, "module", None) or node.names[0].name
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            taken = OPENERS & names if module == "io" else ARRAY_FILES & names if module == "numpy" else ()
            for name in (*taken, *({module.split(".")[0]} & FORMATS)):
                yield node.lineno, f"imports {name}, which opens files"
        if isinstance(node, ast.Call):
            name, of = called(node), owner(node.func)
            files = name in OPENERS or (name in ARRAY_FILES and of in numpy) or name == "tofile"
            if files and not may_open:
                yield node.lineno, f"opens a file with {name}()"
            if name == "print" and below:
                yield node.lineno, "prints"
            if name in ("now", "utcnow", "today") and of in ("datetime", "date") and below:
                yield node.lineno, f"reads a clock with {of}.{name}()"
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle" and getattr(keyword.value, "value", None) is not False:
                    yield node.lineno, "allows pickle"
        elif isinstance(node, ast.Attribute) and below:
            if node.attr in ENVIRON and where != "offing/compiling.py":  # XLA_FLAGS, which are the user's to set
                yield node.lineno, f"reads os.{node.attr}"
            if node.attr in ("stdout", "stderr") and owner(node) == "sys":
                yield node.lineno, f"prints to sys.{node.attr}"


def violations(root: Path) -> list[str]:
    """Each broken rule under `root`/offing, as `file:line: what`."""
    found = []
    for path in sorted((root / "offing").rglob("*.py")):
        where = path.relative_to(root).as_posix()
        parts = path.relative_to(root).with_suffix("").parts  # offing, room, ...
        package = ".".join(parts[:-1])
        room = room_of(parts) if parts[1] != "__init__" else ""
        if parts[1:3] == ("data", "sources"):
            room = "data/sources"
        known = (*GROUND, *ROOMS, "", *COMMAND_LINE, "online", "runtime", "data/sources")
        if room not in known:
            found.append(f"{where}:1: has no place in the order of rooms")
            continue
        tree = ast.parse(path.read_text(), where)
        broken = [(each.line, forbidden(room, each)) for each in imports(tree, package)]
        broken += touches(where, tree)
        found += [f"{where}:{line}: {why}" for line, why in sorted((n, w) for n, w in broken if w)]
    return found


def test_the_walls_stand():
    assert violations(ROOT) == []


def test_the_whole_house_is_read():
    read = {path.relative_to(ROOT).as_posix() for path in (ROOT / "offing").rglob("*.py")}
    assert {"offing/types.py", "offing/data/sources/arrays.py", "offing/online/envs.py"} <= read
    tree = ast.parse((ROOT / "offing/online/envs.py").read_text())
    names = {each.name for each in imports(tree, "offing.online")}
    assert {"gymnax", "offing.types.Task", "jax.numpy"} <= names


PLANTED = [
    # the order of rooms
    ("types.py", "from .nets import mlp", None),
    ("types.py", "from .data import load", "ground floor"),
    ("nets.py", "import offing.posterior.ensemble", "ground floor"),
    ("data/dataset.py", "from ..types import Task", None),
    ("data/dataset.py", "from .sources.arrays import read_npz", None),
    ("data/sources/arrays.py", "from ..dataset import Log", None),
    ("data/dataset.py", "from ..posterior import walk", "offing.posterior"),
    ("data/sources/arrays.py", "from ... import pil", "offing.pil"),
    ("data/sources/arrays.py", "from ...tune.sweep import sweep", "offing.tune"),
    ("posterior/walk.py", "from ..data import Split\nfrom . import ensemble", None),
    ("posterior/__init__.py", "from .ensemble import fit", None),
    ("posterior/walk.py", "from ..pil import pil", "offing.pil"),
    ("pil.py", "from .posterior import ensemble\nfrom .data import take", None),
    ("pil.py", "from .planner import iql", "offing.planner"),
    ("planner/iql.py", "from ..pil import pil\nfrom ..posterior import walk\nfrom . import _plan", None),
    ("planner/iql.py", "from ..value import fqe", "offing.value"),
    ("value/fqe.py", "from offing.planner import iql", "offing.planner"),
    ("value/fqe.py", "import offing", "imports offing,"),
    ("value/fqe.py", "from offing import load", "offing.load"),
    ("planner/iql.py", "def f():\n    from ..tune import sweep", "offing.tune"),
    ("planner/iql.py", "import importlib\nimportlib.import_module('offing.value.fqe')", "offing.value"),
    (
        "planner/__init__.py",
        "import importlib\nget = lambda n: importlib.import_module(f'{__name__}.{n}')",
        None,
    ),
    ("tune/systems.py", "from ..planner import iql\nfrom ..value import fqe", None),
    ("tune/systems.py", "from ..report import verdict", "offing.report"),
    ("report/page.py", "from ..tune import choose", None),
    ("report/page.py", "from ..__main__ import main", "command line"),
    ("__init__.py", "from .data import load\nfrom .report import verdict", None),
    ("__init__.py", "from .online import play", "behind the wall"),
    ("helpers.py", "", "no place"),
    ("engine/ray.py", "", "no place"),
    ("runtime/policy.py", "import numpy as np\nfrom . import nets", None),
    ("runtime/policy.py", "import jax.numpy as jnp", "numpy only"),
    ("runtime/policy.py", "from ..types import Task", "no room"),
    # the wall
    ("online/play.py", "import gymnax\nfrom ..value import predictive\nfrom . import envs", None),
    ("tune/engine.py", "from ..online import envs", "behind the wall"),
    ("tune/engine.py", "def f():\n    from offing.online.envs import make", "behind the wall"),
    ("data/inspect.py", "import gymnasium", "simulator"),
    ("value/fqe.py", "def f():\n    from brax.envs import create", "simulator"),
    ("data/sources/minari.py", "def read():\n    import minari", None),
    ("data/sources/minari.py", "import minari", "simulator"),
    ("data/sources/minari.py", "def read():\n    import gymnasium", "simulator"),
    ("data/inspect.py", "def read():\n    import minari", "simulator"),
    ("__main__.py", "from . import data\ndef collect():\n    from .online import collect", None),
    ("__main__.py", "from .online import collect", "only inside a function"),
    ("__main__.py", "def f():\n    import gymnax", "simulator"),
    # the world outside
    ("data/sources/arrays.py", "import numpy as np\nnp.load('x', allow_pickle=False)\nopen('x')", None),
    ("report/store.py", "import numpy as np\nnp.savez('x')\nopen('x')", None),
    ("report/page.py", "open('x')", "opens a file"),
    ("report/page.py", "from pathlib import Path\nPath('x').write_text('y')", "opens a file"),
    ("data/dataset.py", "import numpy as np\nnp.load('x')", "opens a file"),
    ("tune/sweep.py", "import numpy\nnumpy.savez_compressed('x')", "opens a file"),
    ("tune/sweep.py", "import numpy as xp\nxp.save('x', 1)", "opens a file"),
    ("tune/sweep.py", "from numpy import savez", "opens files"),
    ("tune/sweep.py", "from .sweep import load\nload('x')", None),
    ("report/page.py", "def f():\n    import h5py", "opens files"),
    ("data/sources/hdf5.py", "import h5py", None),
    ("data/__init__.py", "from pathlib import Path\nload = lambda p: Path(p).exists()\nload('x')", None),
    ("__main__.py", "import time, os\nprint(time.time(), os.environ)", None),
    ("__main__.py", "open('x')", "opens a file"),
    ("__main__.py", "from .commands import learning", None),
    ("commands/acting.py", "import os\nprint(os.environ)\ndef play():\n    from ..online.play import play", None),
    ("commands/acting.py", "from ..online.play import play", "only inside a function"),
    ("report/page.py", "from ..commands import acting", "command line"),
    ("report/verdict.py", "print('GO')", "prints"),
    ("planner/iql.py", "import jax\njax.debug.print('{}', 1)", "prints"),
    ("online/play.py", "import sys\nsys.stdout.write('x')", "sys.stdout"),
    ("tune/sweep.py", "import time", "a clock"),
    ("tune/sweep.py", "from time import perf_counter", "a clock"),
    ("report/page.py", "from datetime import datetime\ndatetime.now()", "a clock"),
    ("tune/engine.py", "import os\nos.environ['X'] = '1'", "os.environ"),
    ("tune/engine.py", "import os as o\no.environ['X'] = '1'", "os.environ"),
    ("tune/engine.py", "from os import environ", "os.environ"),
    ("tune/engine.py", "import os\nos.getenv('X')", "os.getenv"),
    ("data/__init__.py", "import os\nos.fspath('x')", None),
    ("report/store.py", "import pickle", "pickle"),
    ("__main__.py", "def f():\n    from pickle import loads", "pickle"),
    ("data/sources/arrays.py", "import numpy as np\nnp.load('x', allow_pickle=True)", "pickle"),
]


@pytest.mark.parametrize(("file", "text", "why"), PLANTED)
def test_a_planted_violation_is_found(tmp_path, file, text, why):
    path = tmp_path / "offing" / file
    path.parent.mkdir(parents=True)
    path.write_text(f'"""A file."""\n\n{text}\n')
    found = violations(tmp_path)
    if why is None:
        assert found == []
    else:
        assert len(found) == 1
        assert found[0].startswith(f"offing/{file}:")
        assert why in found[0]


def test_a_violation_says_where(tmp_path):
    path = tmp_path / "offing" / "data" / "x.py"
    path.parent.mkdir(parents=True)
    path.write_text("import numpy\n\nfrom ..report import page\n\nprint(1)\n")
    assert violations(tmp_path) == [
        "offing/data/x.py:3: imports offing.report, which does not come before it",
        "offing/data/x.py:5: prints",
    ]
