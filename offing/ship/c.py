"""A Program as one C header and one source file: C99, the standard library's mathematics and nothing else."""

from __future__ import annotations

import json
import re

import numpy as np

from .program import REDUCE, Op, Program

TYPES = {"float32": "float", "int32": "int", "bool": "int"}
UNARY = {
    **{"neg": "-({})", "exp": "expf({})", "log": "logf({})", "log1p": "log1pf({})", "expm1": "expm1f({})"},
    **{"tanh": "tanhf({})", "logistic": "1.0f / (1.0f + expf(-({})))", "sqrt": "sqrtf({})"},
    **{"rsqrt": "1.0f / sqrtf({})", "abs": "fabsf({})", "sign": "(float)(({0} > 0) - ({0} < 0))"},
    **{"floor": "floorf({})", "ceil": "ceilf({})", "round": "rintf({})", "not": "!({})"},
    **{"sin": "sinf({})", "cos": "cosf({})"},
}
BINARY = {"add": "+", "sub": "-", "mul": "*", "div": "/", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">"}
_STEPS = {"sum": "{o} += {e}", "any": "{o} = {o} || {e}", "all": "{o} = {o} && {e}"}
_STEPS |= {"max": "if ({e} > {o}) {o} = {e}", "min": "if ({e} < {o}) {o} = {e}"}
BINARY |= {"ge": ">=", "and": "&&", "or": "||"}


def c_files(program: Program, name: str, facts: dict[str, object], refusals: list[str]) -> tuple[str, str]:
    """Header and source; the header says `facts`, and a bad number i of an observation gets `refusals[i]`."""
    return _header(program, name, facts), _source(program, name, refusals)


def identifier(text: str) -> str:
    """Text as a name in C."""
    made = re.sub(r"\W", "_", text, flags=re.ASCII) or "policy"
    return f"p_{made}" if made[0].isdigit() else made


def _header(program: Program, name: str, facts: dict[str, object]) -> str:
    big, amounts = name.upper(), program.values[program.action].size
    about = "\n".join(f" *   {key}: {_comment(value)}" for key, value in facts.items())
    arguments = _arguments(program, name, "reward")
    begin = f"\n/* Fills the state that an episode begins with. */\nvoid {name}_begin(float state[{big}_STATE]);\n"
    return f"""/* A policy, written by offing. C99, no dependencies but the standard library.
{about}
 */
#ifndef {big}_H
#define {big}_H

#define {big}_OBS {program.width}
#define {big}_STATE {len(program.initial)}
#define {big}_{"CHOICES" if program.choices else "ACTIONS"} {program.choices or amounts}

#ifdef __cplusplus
extern "C" {{
#endif
{begin if program.remembers else ""}
/* One decision. The result is 0, or why there is none; then nothing was written.{_reward(program)} */
const char *{name}_step({arguments});

#ifdef __cplusplus
}}
#endif
#endif
"""


def _arguments(program: Program, name: str, reward: str) -> str:
    big = name.upper()
    out = "int *choice" if program.choices else f"float action[{big}_ACTIONS]"
    memory = f", float {reward}, float state[{big}_STATE]" if program.remembers else ""
    return f"const float obs[{big}_OBS]{memory}, {out}"


def _reward(program: Program) -> str:
    return (
        "\n   `reward` is what the last action earned; in the first step of an episode it is not read."
        * program.remembers
    )


def _comment(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True)
    return text.replace("*/", "* /").replace("\n", " ")


def _source(program: Program, name: str, refusals: list[str]) -> str:
    big = name.upper()
    constants = "\n".join(_constant(each, array) for each, array in program.constants.items())
    texts = ",\n".join(f"    {json.dumps(text)}" for text in refusals)
    buffers = "\n".join(
        f"    {TYPES[program.values[op.output].kind]} {op.output}[{max(1, program.values[op.output].size)}];"
        for op in program.ops
    )
    body = "\n".join(f"    {_statement(program, op)}" for op in program.ops)
    arguments = _arguments(program, name, "reward_")
    scalar = "    const float reward[1] = {reward_};\n" if program.remembers else ""
    bad_reward = f"!isfinite(reward_) && state[{big}_STATE - 1] != 0"
    guard = f"    if ({bad_reward}) return refusals[{big}_OBS];\n" if program.remembers else ""
    begin = _begin(program, name) if program.remembers else ""
    last = program.action
    give = (
        f"    *choice = (int){last}[0];\n"
        if program.choices
        else _copied("action", last, program.values[last].size)
    )
    keep = "" if program.next_state is None else _copied("state", program.next_state, len(program.initial))
    return f"""/* A policy, written by offing; see the header. */
#include "{name}.h"

#include <math.h>
#include <stddef.h>

{constants}

static const char *const refusals[] = {{
{texts}
}};
{begin}
const char *{name}_step({arguments}) {{
{scalar}{buffers}
    for (int i = 0; i < {big}_OBS; i++)
        if (!isfinite(obs[i])) return refusals[i];
{guard}{body}
{give}{keep}    return NULL;
}}
"""


def _begin(program: Program, name: str) -> str:
    first = ", ".join(_number(x) for x in program.initial)
    return f"""
void {name}_begin(float state[{name.upper()}_STATE]) {{
    static const float first[] = {{{first}}};
    for (int i = 0; i < {name.upper()}_STATE; i++) state[i] = first[i];
}}
"""


def _copied(to: str, source: str, size: int) -> str:
    return f"    for (int i = 0; i < {size}; i++) {to}[i] = {source}[i];\n"


def _constant(name: str, array: np.ndarray) -> str:
    kind = "float" if array.dtype == np.float32 else "int"
    numbers = [_number(x) if kind == "float" else str(int(x)) for x in array.ravel()] or ["0"]
    lines = [", ".join(numbers[i : i + 8]) for i in range(0, len(numbers), 8)]
    return f"static const {kind} {name}[{len(numbers)}] = {{" + ",\n    ".join(lines) + "};"


def _number(x: float) -> str:
    """A float of 32 bits, to the last bit."""
    if not np.isfinite(x):
        return "NAN" if np.isnan(x) else "INFINITY" if x > 0 else "-INFINITY"
    return float(x).hex() + "f"


def _at(program: Program, name: str, shape: tuple[int, ...]) -> str:
    """Element i of an array of `shape`, read off an array that broadcasts to it."""
    own = program.values[name].shape
    if program.values[name].size == 1:
        return f"{name}[0]"
    if own == shape:
        return f"{name}[i]"
    padded = (1,) * (len(shape) - len(own)) + own
    parts = []
    for axis, n in enumerate(padded):
        if n > 1:
            after, stride = int(np.prod(shape[axis + 1 :], dtype=int)), int(np.prod(padded[axis + 1 :], dtype=int))
            parts.append(f"(i / {after} % {n}) * {stride}")
    return f"{name}[{' + '.join(parts)}]"


def _statement(program: Program, op: Op) -> str:
    """One operation as a loop."""
    shape, size = program.values[op.output].shape, program.values[op.output].size
    if op.kind in UNARY or op.kind in BINARY or op.kind in ("maximum", "minimum", "pow", "where", "cast"):
        each = [_at(program, name, shape) for name in op.inputs]
        return f"for (int i = 0; i < {size}; i++) {op.output}[i] = {_element(program, op, each)};"
    if op.kind == "dot":
        k, n = program.values[op.inputs[1]].shape
        a, b = op.inputs
        product = f"sum += {a}[i / {n} * {k} + j] * {b}[j * {n} + i % {n}];"
        inner = f"float sum = 0; for (int j = 0; j < {k}; j++) {product} {op.output}[i] = sum;"
        return f"for (int i = 0; i < {size}; i++) {{ {inner} }}"
    if op.kind in REDUCE:
        return _reduced(program, op)
    return _moved(program, op)


def _element(program: Program, op: Op, each: list[str]) -> str:
    if op.kind in UNARY:
        return UNARY[op.kind].format(*each)
    if op.kind in BINARY:
        return f"{each[0]} {BINARY[op.kind]} {each[1]}"
    if op.kind == "where":
        return f"{each[0]} ? {each[1]} : {each[2]}"
    if op.kind == "pow":
        return f"powf({each[0]}, {each[1]})"
    if op.kind == "cast":
        return (
            f"{each[0]} != 0"
            if op.attributes["kind"] == "bool"
            else f"({TYPES[str(op.attributes['kind'])]}){each[0]}"
        )
    sign = ">" if op.kind == "maximum" else "<"
    return f"{each[0]} {sign} {each[1]} ? {each[0]} : {each[1]}"


def _indices(program: Program, op: Op) -> np.ndarray:
    """Of every element of the output, which element of the input it is; of a reduction, which ones [..., k]."""
    shape = program.values[op.inputs[0]].shape
    index, made = np.arange(program.values[op.inputs[0]].size).reshape(shape), program.values[op.output].shape
    of = lambda name: [int(n) for n in np.atleast_1d(np.asarray(op.attributes[name], int))]
    if op.kind == "slice":
        return index[tuple(map(slice, of("starts"), of("limits"), of("strides")))]
    if op.kind == "transpose":
        return index.transpose(of("axes"))
    if op.kind == "broadcast":
        wide = [1] * len(made)
        for axis, n in zip(of("dims"), shape, strict=True):
            wide[axis] = n
        return np.broadcast_to(index.reshape(wide), made)
    if op.kind == "reshape":
        return index.reshape(made)
    axes = of("axes")
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    return index.transpose([*rest, *axes]).reshape(program.values[op.output].size, -1)


def _table(op: Op, index: np.ndarray) -> tuple[str, str]:
    """What must stand before a loop over i, and the input's element in it."""
    flat, name = index.ravel(), op.inputs[0]
    if np.array_equal(flat, flat[0] + np.arange(len(flat))):
        return "", f"{name}[{flat[0]} + i]"
    if (flat == flat[0]).all():
        return "", f"{name}[{flat[0]}]"
    return f"static const int m_{op.output}[] = {{{', '.join(map(str, flat))}}}; ", f"{name}[m_{op.output}[i]]"


def _moved(program: Program, op: Op) -> str:
    out, size = op.output, program.values[op.output].size
    if op.kind != "concat":
        before, element = _table(op, _indices(program, op))
        return f"{before}for (int i = 0; i < {size}; i++) {out}[i] = {element};"
    shapes, axis = [program.values[name].shape for name in op.inputs], int(str(op.attributes["axis"]))
    place = np.arange(size).reshape(program.values[out].shape)
    ends, parts = np.cumsum([shape[axis] for shape in shapes]), []
    for name, shape, end in zip(op.inputs, shapes, ends, strict=True):
        where = place.take(range(int(end) - shape[axis], int(end)), axis).ravel()
        if not len(where):
            continue
        if np.array_equal(where, where[0] + np.arange(len(where))):
            parts.append(f"for (int i = 0; i < {len(where)}; i++) {out}[{where[0]} + i] = {name}[i];")
        else:
            parts += [f"{out}[{to}] = {name}[{at}];" for at, to in enumerate(where)]
    return "\n    ".join(parts)


def _reduced(program: Program, op: Op) -> str:
    index = _indices(program, op)
    (size, count), out = index.shape, op.output
    before, element = _table(op, index)
    of = lambda j: element.replace("i]", f"({j})]") if element.endswith("i]") else element
    if "m_" in element:
        of = lambda j: f"{op.inputs[0]}[m_{out}[{j}]]"
    first, each = of(f"i * {count}"), of(f"i * {count} + j")
    if op.kind in ("argmax", "argmin"):
        sign, best = ">" if op.kind == "argmax" else "<", of(f"i * {count} + {out}[i]")
        step = f"if ({each} {sign} {best}) {out}[i] = j;"
        first, step = "0", step.rstrip(";")
    else:
        step = _STEPS[op.kind].format(o=f"{out}[i]", e=each)
    inner = f"{out}[i] = {first}; for (int j = 1; j < {count}; j++) {step};"
    return f"{before}for (int i = 0; i < {size}; i++) {{ {inner} }}"
