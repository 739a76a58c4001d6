"""A small BERT, GPT-2 and Llama, with the nodes that PyTorch's exporter writes for them."""

import numpy as np
import onnx.helper as oh
from building import FLOAT, floats, model_of
from onnx import TensorProto

BATCHES, ROWS, HIDDEN, HEADS, WORDS = 2, 6, 16, 2, 20
SIZE = HIDDEN // HEADS


class Writer:
    """Nodes and weights of a model; a call adds a node and returns the name of its output."""

    def __init__(self):
        self.nodes, self.weights = [], {}

    def __call__(self, operator, *inputs, outputs=1, **attributes):
        names = [f"{operator}_{len(self.nodes)}_{i}" for i in range(outputs)]
        node = oh.make_node(operator, list(inputs), names, names[0], **attributes)
        self.nodes.append(node)
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.weights)}"
        self.weights[name] = np.asarray(value, dtype)
        return name

    def weight(self, *shape):
        return self.constant(floats(len(self.weights), *shape) / np.sqrt(shape[0]))

    def linear(self, x, inside, outside):
        return self("Add", self.weight(outside), self("MatMul", x, self.weight(inside, outside)))

    def gemm(self, x, inside, outside):
        """A product as GPT-2 has it, of rows of all batches."""
        rows = self("Reshape", x, self.integers(-1, inside))
        product = self("Gemm", rows, self.weight(inside, outside), self.weight(outside))
        return self("Reshape", product, self.integers(BATCHES, ROWS, outside))

    def integers(self, *values):
        return self.constant(values, np.int64)

    def norm(self, x):
        scale = self.constant(1 + floats(len(self.weights), HIDDEN) / 4)
        return self("LayerNormalization", x, scale, self.weight(HIDDEN), axis=-1, epsilon=1e-5)

    def root_mean_square(self, x):
        square = self("Pow", x, self.constant(2))
        square = self("ReduceMean", square, self.integers(-1), keepdims=1)
        root = self("Sqrt", self("Add", square, self.constant(1e-6)))
        scale = self.constant(1 + floats(len(self.weights), HIDDEN) / 4)
        return self("Mul", scale, self("Mul", x, self("Div", self.constant(1), root)))

    def heads(self, x, *order):
        split = self("Reshape", x, self.integers(0, 0, HEADS, SIZE))
        return self("Transpose", split, perm=list(order))

    def joined(self, x):
        back = self("Transpose", x, perm=[0, 2, 1, 3])
        return self("Reshape", back, self.integers(0, 0, HIDDEN))

    def gelu(self, x):
        one = self("Add", self("Erf", self("Div", x, self.constant(2**0.5))), self.constant(1))
        return self("Mul", self("Mul", x, one), self.constant(0.5))

    def model(self, result, *inputs, opset=17):
        declared = {name: (TensorProto.INT64, [BATCHES, ROWS]) for name in inputs}
        self.nodes.append(oh.make_node("Identity", [result], ["y"]))
        return model_of(self.nodes, declared, {"y": FLOAT}, self.weights, opset,
                        producer_name="pytorch")  # fmt: skip


def bert(layers=2):
    """An encoder with a mask of keys; the inputs are words, types and the mask."""
    w = Writer()
    mask = w("Unsqueeze", w("Unsqueeze", "attention_mask", w.integers(1)), w.integers(2))
    hidden = w("Sub", w.constant(1), w("Cast", mask, to=FLOAT))
    hidden = w("Mul", hidden, w.constant(-10000))
    word = w("Gather", w.weight(WORDS, HIDDEN), "input_ids")
    both = w("Add", word, w("Gather", w.weight(2, HIDDEN), "token_type_ids"))
    count = w("Gather", w("Shape", "input_ids"), w.constant(1, np.int64))
    rows = w("Slice", w.constant([range(2 * ROWS)], np.int64), w.integers(0),
             w("Unsqueeze", count, w.integers(0)), w.integers(1))  # fmt: skip
    place = w("Gather", w.weight(2 * ROWS, HIDDEN), rows)
    x = w.norm(w("Add", both, place))
    for _ in range(layers):
        query = w.heads(w.linear(x, HIDDEN, HIDDEN), 0, 2, 1, 3)
        key = w.heads(w.linear(x, HIDDEN, HIDDEN), 0, 2, 3, 1)
        value = w.heads(w.linear(x, HIDDEN, HIDDEN), 0, 2, 1, 3)
        scores = w("Div", w("MatMul", query, key), w.constant(SIZE**0.5))
        weights = w("Softmax", w("Add", scores, hidden), axis=-1)
        mixed = w.linear(w.joined(w("MatMul", weights, value)), HIDDEN, HIDDEN)
        x = w.norm(w("Add", mixed, x))
        inner = w.gelu(w.linear(x, HIDDEN, 2 * HIDDEN))
        x = w.norm(w("Add", w.linear(inner, 2 * HIDDEN, HIDDEN), x))
    return w.model(x, "input_ids", "attention_mask", "token_type_ids")


def gpt2(layers=2):
    """A decoder, in which a row sees itself and the rows before it."""
    w = Writer()
    word = w("Gather", w.weight(WORDS, HIDDEN), "input_ids")
    x = w("Add", word, w("Gather", w.weight(ROWS, HIDDEN), w.constant([range(ROWS)], np.int64)))
    causal = np.tril(np.ones((1, 1, ROWS, ROWS), bool))
    for _ in range(layers):
        parts = w("Split", w.gemm(w.norm(x), HIDDEN, 3 * HIDDEN), outputs=3, axis=2)
        query, value = (w.heads(part, 0, 2, 1, 3) for part in (parts[0], parts[2]))
        scores = w("Div", w("MatMul", query, w.heads(parts[1], 0, 2, 3, 1)),
                   w.constant(SIZE**0.5))  # fmt: skip
        count, total = (
            w("Squeeze", w("Slice", w("Shape", scores), w.integers(i), w.integers(i + 1),
                           w.integers(0)))
            for i in (2, 3)
        )  # fmt: skip
        first = w("Unsqueeze", w("Sub", total, count), w.integers(0))
        end = w("Unsqueeze", total, w.integers(0))
        seen = w("Slice", w.constant(causal, bool), first, end, w.integers(2))
        seen = w("Slice", seen, w.integers(0), end, w.integers(3))
        weights = w("Softmax", w("Where", seen, scores, w.constant(-10000)), axis=-1)
        x = w("Add", w.gemm(w.joined(w("MatMul", weights, value)), HIDDEN, HIDDEN), x)
        inner = w.gelu(w.gemm(w.norm(x), HIDDEN, 2 * HIDDEN))
        x = w("Add", x, w.gemm(inner, 2 * HIDDEN, HIDDEN))
    return w.model(w.norm(x), "input_ids")


def llama(layers=2):
    """A decoder with normalization by the root of the mean square, and a gated product."""
    w = Writer()
    x = w("Gather", w.weight(WORDS, HIDDEN), "input_ids")
    causal = w.constant(np.triu(np.full((ROWS, ROWS), -10000), 1))
    for _ in range(layers):
        normal = w.root_mean_square(x)
        query, key, value = (
            w.heads(w("MatMul", normal, w.weight(HIDDEN, HIDDEN)), 0, 2, *last)
            for last in ((1, 3), (3, 1), (1, 3))
        )
        scores = w("Div", w("MatMul", query, key), w.constant(SIZE**0.5))
        weights = w("Softmax", w("Add", scores, causal), axis=-1)
        mixed = w("MatMul", w.joined(w("MatMul", weights, value)), w.weight(HIDDEN, HIDDEN))
        x = w("Add", x, mixed)
        normal = w.root_mean_square(x)
        gate = w("MatMul", normal, w.weight(HIDDEN, 2 * HIDDEN))
        gate = w("Mul", gate, w("Sigmoid", gate))
        inner = w("Mul", gate, w("MatMul", normal, w.weight(HIDDEN, 2 * HIDDEN)))
        x = w("Add", x, w("MatMul", inner, w.weight(2 * HIDDEN, HIDDEN)))
    return w.model(w.root_mean_square(x), "input_ids", opset=21)


def words(model, seed=0):
    """Inputs of a model."""
    generator = np.random.default_rng(seed)
    mask = np.ones((BATCHES, ROWS), np.int64)
    mask[1, 4:] = 0
    found = {
        "input_ids": generator.integers(0, WORDS, (BATCHES, ROWS)),
        "attention_mask": mask,
        "token_type_ids": np.arange(ROWS)[None].repeat(BATCHES, 0) // 3,
    }
    return {value.name: found[value.name] for value in model.graph.input}
