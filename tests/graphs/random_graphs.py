"""Random graphs of elementwise and native operators."""

import numpy as np

import anydml as dml

T = dml.TensorDesc


def random_graph(seed):
    """A graph that can be checked at the latest level, and arrays for its inputs by name."""
    rng = np.random.default_rng(seed)
    graph = dml.GraphBuilder()
    known, arrays = [], {}

    def pick(rank=None):
        candidates = [e for e in known if rank is None or len(e.sizes) == rank]
        return candidates[rng.integers(len(candidates))]

    def like(x):
        """Another expression of the type and sizes, made of bytes where there is none."""
        candidates = [e for e in known if e.sizes == x.sizes and e.data_type is x.data_type]
        return candidates[rng.integers(len(candidates))]

    for i in range(rng.integers(1, 4)):
        sizes = tuple(int(n) for n in rng.integers(1, 5, 4))
        owned = "OWNED_BY_DML" if rng.random() < 0.3 else "NONE"
        dtype = ["FLOAT32", "FLOAT16", "INT32"][rng.integers(3)]
        desc = T(dtype, sizes, flags=owned)
        known.append(graph.input(f"x{i}", desc))
        arrays[f"x{i}"] = rng.integers(-9, 9, sizes).astype(desc.data_type.numpy)

    def constant():
        x = pick()
        data = rng.integers(-9, 9, x.sizes).astype(x.data_type.numpy)
        return [graph.constant(data)]

    def join():
        x = pick()
        axis = int(rng.integers(len(x.sizes)))
        return [graph.join([x, like(x), x], axis=axis)]

    def split():
        x = pick()
        axis = int(rng.integers(len(x.sizes)))
        first = int(rng.integers(1, x.sizes[axis] + 1))
        sizes = [first, x.sizes[axis] - first] if first < x.sizes[axis] else [first]
        return graph.split(x, axis=axis, output_axis_sizes=sizes)

    def top_k():
        x = pick()
        axis = int(rng.integers(len(x.sizes)))
        return graph.top_k(x, axis=axis, k=int(rng.integers(1, x.sizes[axis] + 1)))

    def transpose():
        x = pick()
        if x.desc.strides is not None:
            return []
        order = rng.permutation(len(x.sizes))
        strides = x.desc.element_strides
        return [
            graph.reinterpret(x, None, [x.sizes[i] for i in order], [strides[i] for i in order])
        ]

    def broadcast():
        x = pick()
        size = int(np.prod(x.sizes))
        if x.desc.strides is not None or size % 4:
            return []
        return [graph.reinterpret(x, None, (2, size, 1, 1), (0, 1, 0, 0))]

    def punned():
        x = pick()
        if x.desc.strides is not None:
            return []
        total = x.desc.total_tensor_size_in_bytes
        return [graph.reinterpret(x, "UINT8", (1, 1, 1, total)),
                graph.reinterpret(x, "INT32", (1, total // 4, 1, 1))]  # fmt: skip

    def pair(function):
        x = pick()
        return [function(x, like(x))]

    makers = [
        constant, join, split, top_k, transpose, transpose, broadcast, punned,
        lambda: pair(graph.add), lambda: pair(graph.multiply), lambda: pair(graph.subtract),
        lambda: [graph.identity(pick())],
        lambda: [graph.cast(pick(), output_data_type="FLOAT32")],
        lambda: [graph.activation_relu(e) for e in [pick()] if e.data_type.name[0] == "F"],
        lambda: [graph.tile(e, repeats=(1, 2, 1, 1)) for e in [pick()] if len(e.sizes) == 4],
    ]  # fmt: skip
    for _ in range(rng.integers(3, 14)):
        known += [e for e in makers[rng.integers(len(makers))]() if np.prod(e.sizes) < 5000]
    results = [e for e in known if e._node is not None]
    results = [e for e in results if isinstance(graph._nodes[e._node].node, dml.OperatorNode)]
    results = results or [graph.identity(known[0])]
    count = int(rng.integers(1, len(results) + 1))
    chosen = [results[i] for i in rng.choice(len(results), count)]  # some of them twice
    chosen = [e if e.desc.strides is None else graph.identity(e) for e in chosen]
    return graph.build(**{f"y{i}": e for i, e in enumerate(chosen)}), arrays
