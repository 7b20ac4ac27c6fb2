"""A jaxpr -> plain operations: every primitive that a policy may use at a step, in terms of `program.KINDS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal

from ..types import BadInput
from .program import Attributes, Op, Value

SAME = {
    **{name: name for name in ("neg", "exp", "log", "log1p", "expm1", "tanh", "logistic", "sqrt", "rsqrt")},
    **{name: name for name in ("abs", "sign", "floor", "ceil", "round", "not", "sin", "cos")},
    **{
        name: name for name in ("add", "sub", "mul", "div", "pow", "eq", "ne", "lt", "le", "gt", "ge", "and", "or")
    },
    "max": "maximum",
    "min": "minimum",
}
REDUCTIONS = {
    "reduce_sum": "sum",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_or": "any",
    "reduce_and": "all",
    "argmax": "argmax",
    "argmin": "argmin",
}
Traced = Any  # a value of JAX's while it is traced, or a part of a jaxpr: those have no public types
NOTHING = ("stop_gradient", "copy", "copy_p", "optimization_barrier", "sharding_constraint", "pvary")
INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")  # parameters that hold what a primitive calls


class Ref(NamedTuple):
    """A variable while tracing: a name, or an array that is already known."""

    name: str | None
    array: Traced = None


class Tracer:
    """Walks a jaxpr and writes operations; what hangs on no input is computed at once."""

    def __init__(self, name: str):
        self.name = name
        self.ops: list[Op] = []
        self.values: dict[str, Value] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.refs: dict[Traced, Ref] = {}
        self.shared: dict[int, tuple[str, Traced]] = {}  # constants by identity: one weight is written once
        self.forms: dict[tuple[int, str], tuple[Traced, np.ndarray]] = {}

    def known(self, name: str, aval: Traced) -> Ref:
        self.values[name] = _value(aval)
        return Ref(name)

    def bind(self, var: Traced, ref: Ref) -> None:
        self.refs[var] = ref

    def read(self, var: Traced) -> Ref:
        return Ref(None, np.asarray(var.val)) if isinstance(var, Literal) else self.refs[var]

    def named(self, ref: Ref) -> str:
        """The name of a variable; of an array, that of the constant it becomes."""
        if ref.name is not None:
            return ref.name
        if id(ref.array) not in self.shared:
            array, name = np.asarray(ref.array), f"c{len(self.constants)}"
            self.values[name] = Value(array.shape, kind_of(array.dtype))
            self.constants[name] = array.astype(self.values[name].kind)
            self.shared[id(ref.array)] = (name, ref.array)
        return self.shared[id(ref.array)][0]

    def write(self, op: str, inputs: list[Ref], made: Value, /, **attributes: Traced) -> Ref:
        """One operation more, and the name of what it makes."""
        name = f"v{len(self.ops)}"
        plain: Attributes = {key: _plain(value) for key, value in attributes.items()}
        self.ops.append(Op(op, tuple(self.named(ref) for ref in inputs), name, plain))
        self.values[name] = made
        return Ref(name)

    def run(self, jaxpr: Traced, consts: Traced) -> list[str]:
        """Names of what the jaxpr gives; its inputs are bound beforehand."""
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            self.bind(var, Ref(None, np.asarray(const)))
        self.walk(jaxpr)
        return [self.named(self.read(var)) for var in jaxpr.outvars]

    def walk(self, jaxpr: Traced) -> None:
        for eqn in jaxpr.eqns:
            refs = [self.read(var) for var in eqn.invars]
            inside = next((eqn.params[key] for key in INNER if key in eqn.params), None)
            if all(ref.name is None for ref in refs):
                outs = eqn.primitive.bind(*[jnp.asarray(ref.array) for ref in refs], **eqn.params)
                outs = outs if eqn.primitive.multiple_results else [outs]
                made = [Ref(None, np.asarray(out)) for out in outs]
            elif inside is not None and eqn.primitive.name not in ("scan", "while", "cond"):
                made = self.call(inside, refs)
            else:
                made = self.one(eqn, refs)
            for var, ref in zip(eqn.outvars, made, strict=True):
                self.bind(var, ref)

    def call(self, inside: Traced, refs: list[Ref]) -> list[Ref]:
        """A function that is called, written where it is called."""
        jaxpr, consts = (inside.jaxpr, inside.consts) if hasattr(inside, "consts") else (inside, [])
        outer, self.refs = self.refs, {}
        for var, ref in zip(jaxpr.invars, refs[-len(jaxpr.invars) :], strict=True):
            self.bind(var, ref)
        for var, const in zip(jaxpr.constvars, consts, strict=True):
            self.bind(var, Ref(None, np.asarray(const)))
        self.walk(jaxpr)
        made = [self.read(var) for var in jaxpr.outvars]
        self.refs = outer
        return made

    def one(self, eqn: Traced, refs: list[Ref]) -> list[Ref]:
        """One primitive as operations."""
        name, params, aval = eqn.primitive.name, eqn.params, eqn.outvars[0].aval
        value = _value(aval)

        def put(op: str, inputs: list[Ref], /, **more: Traced) -> Ref:
            return self.write(op, inputs, value, **more)

        if name in NOTHING:
            return refs
        if name in SAME:
            return [put(SAME[name], refs)]
        if name in REDUCTIONS:
            return [put(REDUCTIONS[name], refs, axes=params["axes"])]
        if name == "dot_general":
            return [self.dot(refs, eqn)]
        if name == "split":
            return self.split(refs[0], eqn)
        if name == "select_n" and len(refs) == 3:
            return [put("where", [refs[0], refs[2], refs[1]])]
        if name == "clamp":
            low, x, high = refs
            return [put("minimum", [put("maximum", [x, low]), high])]
        if name in ("square", "integer_pow"):
            return [self.power(refs[0], 2 if name == "square" else int(params["y"]), put)]
        return [self.shaped(name, refs, params, put, aval.shape)]

    def shaped(self, name: str, refs: list[Ref], params: Traced, put: Traced, shape: Traced) -> Ref:
        """Primitives that move numbers about."""
        if name in ("reshape", "squeeze", "expand_dims"):
            return put("reshape", refs[:1], shape=shape)
        if name == "broadcast_in_dim":
            return put("broadcast", refs[:1], shape=shape, dims=params["broadcast_dimensions"])
        if name == "transpose":
            return put("transpose", refs, axes=params["permutation"])
        if name == "concatenate":
            return put("concat", refs, axis=params["dimension"])
        if name == "slice":
            starts, limits = params["start_indices"], params["limit_indices"]
            return put("slice", refs, starts=starts, limits=limits, strides=params["strides"] or [1] * len(starts))
        if name == "convert_element_type":
            return put("cast", refs, kind=kind_of(params["new_dtype"]))
        raise BadInput(f"{self.name}: cannot be exported, since what it does at a step uses JAX's `{name}`")

    def split(self, ref: Ref, eqn: Traced) -> list[Ref]:
        """Pieces along an axis, each a slice."""
        axis, shape = eqn.params["axis"], eqn.invars[0].aval.shape
        ends, made = np.cumsum(eqn.params["sizes"]), []
        for end, var in zip(ends, eqn.outvars, strict=True):
            starts, limits = [0] * len(shape), list(shape)
            starts[axis], limits[axis] = int(end) - var.aval.shape[axis], int(end)
            more = {"starts": starts, "limits": limits, "strides": [1] * len(shape)}
            made.append(self.write("slice", [ref], _value(var.aval), **more))
        return made

    def power(self, ref: Ref, exponent: int, put: Traced) -> Ref:
        if not 1 <= exponent <= 8:
            return put("pow", [ref, Ref(None, np.float32(exponent))])
        out = ref
        for _ in range(exponent - 1):
            out = put("mul", [out, ref])
        return out

    def dot(self, refs: list[Ref], eqn: Traced) -> Ref:
        """A product over one axis of each, as a [..., k] @ b [k, n]; a constant stands on the right."""
        ((left, right), batch), aval = eqn.params["dimension_numbers"], eqn.outvars[0].aval
        shapes = [var.aval.shape for var in eqn.invars]
        if any(batch) or len(left) != 1 or any(len(shape) > 2 for shape in shapes):
            raise BadInput(f"{self.name}: cannot be exported, since it has a product of more than two axes")
        (a, b), axes = refs, [left[0], right[0]]
        turned = (a.name is None and b.name is not None) or (len(shapes[0]) == 2 and len(shapes[1]) == 1)
        if turned:
            a, b, axes, shapes = b, a, axes[::-1], shapes[::-1]
        a = self.turned(a, shapes[0]) if len(shapes[0]) == 2 and axes[0] == 0 else a
        if len(shapes[1]) == 1:  # two vectors
            b = self.reshaped(b, (shapes[1][0], 1))
            out = self.write("dot", [a, b], Value((*_free(shapes[0], axes[0]), 1), kind_of(aval.dtype)))
            return self.reshaped(out, aval.shape)
        b = self.turned(b, shapes[1]) if axes[1] == 1 else b
        free = [_free(shape, axis) for shape, axis in zip(shapes, axes, strict=True)]
        out = self.write("dot", [a, b], Value((*free[0], *free[1]), kind_of(aval.dtype)))
        return self.turned(out, (*free[0], *free[1])) if turned and free[0] else out

    def turned(self, ref: Ref, shape: tuple[int, ...]) -> Ref:
        """A matrix with its axes exchanged."""
        if ref.name is None:
            return self.kept(ref, "T", lambda array: np.ascontiguousarray(array.T))
        return self.write("transpose", [ref], Value(shape[::-1], self.values[ref.name].kind), axes=[1, 0])

    def reshaped(self, ref: Ref, shape: tuple[int, ...]) -> Ref:
        if ref.name is None:
            return self.kept(ref, str(shape), lambda array: array.reshape(shape))
        return self.write("reshape", [ref], Value(shape, self.values[ref.name].kind), shape=shape)

    def kept(self, ref: Ref, how: str, change: Callable[[np.ndarray], np.ndarray]) -> Ref:
        """A constant in another form, made once."""
        at = (id(ref.array), how)
        if at not in self.forms:
            self.forms[at] = (
                ref.array,
                change(np.asarray(ref.array)),
            )  # what it came of lives on, and its id with it
        return Ref(None, self.forms[at][1])


def _value(aval: Traced) -> Value:
    return Value(tuple(int(n) for n in aval.shape), kind_of(aval.dtype))


def _free(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(n for i, n in enumerate(shape) if i != axis)


def kind_of(dtype: Traced) -> str:
    """float32, int32 or bool: the three that operations tell apart."""
    letter = np.dtype(dtype).kind
    return {"f": "float32", "i": "int32", "u": "int32", "b": "bool"}.get(letter, "float32")


def _plain(value: Traced) -> int | str | list[int]:
    return (
        value if isinstance(value, str) else int(value) if np.ndim(value) == 0 else [int(each) for each in value]
    )
