"""A Program as an ONNX graph, rows side by side: every array that hangs on an input has an axis B in front.

obs [B, S] (, reward [B], state [B, N])  ->  action [B, A] or [B] (, next_state [B, N]), refused [B]

A graph cannot raise, so `refused` is -1, or the place of the number that is not finite: the metadata have the
words for each (`refusals`), which are those that `offing` itself refuses it with.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .program import Op, Program

OPSET, IR = 18, 9  # old enough for runtimes of 2023
NODES = {
    **{
        "neg": "Neg",
        "exp": "Exp",
        "log": "Log",
        "tanh": "Tanh",
        "logistic": "Sigmoid",
        "sqrt": "Sqrt",
        "abs": "Abs",
    },
    **{
        "sign": "Sign",
        "floor": "Floor",
        "ceil": "Ceil",
        "round": "Round",
        "not": "Not",
        "sin": "Sin",
        "cos": "Cos",
    },
    **{"add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "maximum": "Max", "minimum": "Min", "pow": "Pow"},
    **{"eq": "Equal", "lt": "Less", "le": "LessOrEqual", "gt": "Greater", "ge": "GreaterOrEqual"},
    **{"and": "And", "or": "Or", "where": "Where", "dot": "MatMul"},
}
REDUCE = {"sum": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin"}
FIND = {"argmax": "ArgMax", "argmin": "ArgMin"}


def onnx_model(program: Program, metadata: dict[str, str]) -> bytes:
    """The file's content."""
    from onnx import TensorProto, checker, helper

    graph = _Graph(program)
    for op in program.ops:
        graph.write(op)
    last = {"action": program.action, "next_state": program.next_state}
    for name, source in last.items():
        if source is not None:
            graph.leave(name, source)
    graph.refuse()
    axes = lambda name: ["B", *program.values[name].shape]
    ins = [helper.make_tensor_value_info(name, TensorProto.FLOAT, axes(name)) for name in program.inputs]
    action = TensorProto.FLOAT if program.choices is None else TensorProto.INT64
    outs = [helper.make_tensor_value_info("action", action, axes(program.action))]
    if program.next_state is not None:
        outs.append(helper.make_tensor_value_info("next_state", TensorProto.FLOAT, axes("state")))
    outs.append(helper.make_tensor_value_info("refused", TensorProto.INT64, ["B"]))
    made = helper.make_graph(graph.nodes, "policy", ins, outs, graph.tensors)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="offing")
    model.ir_version = IR
    helper.set_model_props(model, metadata)
    checker.check_model(model, full_check=True)
    return model.SerializeToString()


class _Graph:
    """Nodes and constants, as they are written."""

    def __init__(self, program: Program):
        self.program, self.nodes, self.tensors = program, [], []
        self.batched = set(program.inputs) | {op.output for op in program.ops}
        for name, array in program.constants.items():
            self.tensor(name, array)

    def tensor(self, name: str, array: np.ndarray) -> str:
        from onnx import numpy_helper

        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def numbers(self, values: Iterable[int]) -> str:
        """A list of whole numbers, as nodes take them."""
        return self.tensor(f"n{len(self.tensors)}", np.array(list(values), np.int64))

    def node(self, kind: str, inputs: list[str], output: str, **attributes: int | list[int]) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))  # type: ignore[arg-type]
        return output

    def fresh(self, name: str) -> str:
        return f"{name}_{len(self.nodes)}"

    def leave(self, name: str, source: str) -> None:
        """An output of the graph; one that no input changes is repeated for every row."""
        from onnx import TensorProto

        source = source if source in self.batched else self.repeated(source)
        if name == "action" and self.program.choices is not None:
            self.node("Cast", [source], name, to=TensorProto.INT64)
        else:
            self.node("Identity", [source], name)

    def refuse(self) -> None:
        """The output `refused`: of every row, the place of the first number that cannot be used, or -1."""
        from onnx import TensorProto

        bad = self.bad("obs")
        if self.program.remembers:
            last = self.numbers([len(self.program.initial) - 1])
            on = self.node(
                "Squeeze", [self.node("Gather", ["state", last], "on", axis=1), self.numbers([1])], "is_on"
            )
            paid = self.node(
                "And", [self.bad("reward"), self.node("Cast", [on], "on_bool", to=TensorProto.BOOL)], "paid"
            )
            column = self.node("Unsqueeze", [paid, self.numbers([1])], "paid_column")
            bad = self.node("Concat", [bad, column], "all_bad", axis=1)
        number = self.node("Cast", [bad], "bad_number", to=TensorProto.INT32)
        some = self.node("ReduceMax", [number, self.numbers([1])], "some_bad", keepdims=0)
        at = self.node("ArgMax", [number], "bad_at", axis=1, keepdims=0)
        none = self.tensor("none_bad", np.asarray(-1, np.int64))
        self.node("Where", [self.node("Cast", [some], "is_bad", to=TensorProto.BOOL), at, none], "refused")

    def bad(self, name: str) -> str:
        """Which numbers of an input are not finite."""
        parts = [self.node(kind, [name], f"{name}_{kind}") for kind in ("IsNaN", "IsInf")]
        return self.node("Or", parts, f"{name}_bad")

    def repeated(self, name: str) -> str:
        """A constant, once for every row."""
        shape = self.program.values[name].shape
        rows = self.node("Shape", ["obs"], self.fresh("rows"), start=0, end=1)
        whole = self.node("Concat", [rows, self.numbers(shape)], self.fresh("whole"), axis=0)
        return self.node("Expand", [name, whole], self.fresh(name))

    def aligned(self, op: Op) -> list[str]:
        """Inputs of an operation on elements: what has fewer axes than others gets them behind the rows' axis."""
        values = self.program.values
        rank = len(values[op.output].shape)
        out = []
        for name in op.inputs:
            shape = values[name].shape
            if name in self.batched and len(shape) < rank:
                wide = self.numbers([-1, *[1] * (rank - len(shape)), *shape])
                name = self.node("Reshape", [name, wide], self.fresh(name))
            out.append(name)
        return out

    def write(self, op: Op) -> None:
        """One operation as one node, or a few."""
        kind, made = op.kind, op.output
        if kind == "dot":
            self.dot(op)
        elif kind in NODES:
            self.node(NODES[kind], self.aligned(op), made)
        elif kind == "ne":
            self.node("Not", [self.node("Equal", self.aligned(op), self.fresh("eq"))], made)
        elif kind in ("rsqrt", "log1p", "expm1"):
            self.composed(op)
        elif kind in REDUCE:
            axes = self.numbers([axis + 1 for axis in _list(op, "axes")])
            self.node(REDUCE[kind], [op.inputs[0], axes], made, keepdims=0)
        elif kind in ("any", "all"):
            self.truth(op)
        elif kind in FIND:
            from onnx import TensorProto

            axis = _list(op, "axes")[0] + 1
            at = self.node(FIND[kind], list(op.inputs), self.fresh("at"), axis=axis, keepdims=0)
            self.node("Cast", [at], made, to=TensorProto.INT32)
        else:
            self.moved(op)

    def composed(self, op: Op) -> None:
        one = self.tensor(f"n{len(self.tensors)}", np.asarray(1, np.float32))
        (x,) = op.inputs
        if op.kind == "rsqrt":
            self.node("Div", [one, self.node("Sqrt", [x], self.fresh("root"))], op.output)
        elif op.kind == "log1p":
            self.node("Log", [self.node("Add", [x, one], self.fresh("more"))], op.output)
        else:
            self.node("Sub", [self.node("Exp", [x], self.fresh("exp")), one], op.output)

    def truth(self, op: Op) -> None:
        from onnx import TensorProto

        number = self.node("Cast", [op.inputs[0]], self.fresh("number"), to=TensorProto.FLOAT)
        axes = self.numbers([axis + 1 for axis in _list(op, "axes")])
        kind = "ReduceMax" if op.kind == "any" else "ReduceMin"
        reduced = self.node(kind, [number, axes], self.fresh("reduced"), keepdims=0)
        self.node("Cast", [reduced], op.output, to=TensorProto.BOOL)

    def dot(self, op: Op) -> None:
        """Rows are an axis of the left side; where the right hangs on inputs too, each row has its own product."""
        left, right = op.inputs
        shape = self.program.values[left].shape
        left = left if left in self.batched else self.repeated(left)
        if right not in self.batched or len(shape) == 2:
            self.node("MatMul", [left, right], op.output)
            return
        wide = self.node("Reshape", [left, self.numbers([-1, 1, *shape])], self.fresh("wide"))
        product = self.node("MatMul", [wide, right], self.fresh("product"))
        self.node("Squeeze", [product, self.numbers([1])], op.output)

    def moved(self, op: Op) -> None:
        """Operations that move numbers about."""
        kind, shape = op.kind, self.program.values[op.output].shape
        if kind == "reshape":
            self.node("Reshape", [op.inputs[0], self.numbers([-1, *shape])], op.output)
        elif kind == "broadcast":
            wide = [1] * len(shape)
            for axis, n in zip(_list(op, "dims"), self.program.values[op.inputs[0]].shape, strict=True):
                wide[axis] = n
            put = self.node("Reshape", [op.inputs[0], self.numbers([-1, *wide])], self.fresh("put"))
            self.node("Expand", [put, self.numbers([1, *shape])], op.output)
        elif kind == "transpose":
            self.node("Transpose", list(op.inputs), op.output, perm=[0, *(a + 1 for a in _list(op, "axes"))])
        elif kind == "concat":
            parts = [name if name in self.batched else self.repeated(name) for name in op.inputs]
            self.node("Concat", parts, op.output, axis=int(str(op.attributes["axis"])) + 1)
        elif kind == "slice":
            axes = self.numbers(range(1, len(shape) + 1))
            names = [self.numbers(_list(op, name)) for name in ("starts", "limits")]
            self.node("Slice", [op.inputs[0], *names, axes, self.numbers(_list(op, "strides"))], op.output)
        else:
            from onnx import TensorProto

            kinds = {"float32": TensorProto.FLOAT, "int32": TensorProto.INT32, "bool": TensorProto.BOOL}
            self.node("Cast", list(op.inputs), op.output, to=kinds[str(op.attributes["kind"])])


def _list(op: Op, name: str) -> list[int]:
    values = op.attributes[name]
    assert isinstance(values, list)
    return values
