"""Random networks of layers whose results depend continuously on their inputs."""

import numpy as np

import anydml as dml

T = dml.TensorDesc


def random_network(seed):
    """A graph of 10 to 60 nodes, the arrays of its inputs, and its weights, by name."""
    rng = np.random.default_rng(seed)
    graph = dml.GraphBuilder()
    batch, size = int(rng.integers(1, 3)), int(rng.integers(3, 9))
    dtype = "FLOAT16" if rng.random() < 0.15 else "FLOAT32"
    kind = np.dtype(dtype.lower())
    arrays, weights, known = {}, {}, []

    def weight(sizes, low=-1.0):
        name = f"w{len(weights)}"
        weights[name] = rng.uniform(low, 1.0, sizes).astype(kind)
        return graph.input(name, T(dtype, sizes, flags="OWNED_BY_DML"))

    for i in range(2):
        sizes = (batch, int(rng.choice([3, 8, 16])), size, size)
        arrays[f"x{i}"] = rng.normal(size=sizes).astype(kind)
        known.append(graph.input(f"x{i}", T(dtype, sizes)))
    if rng.random() < 0.4:  # numbers that are not finite
        flat = arrays["x0"].reshape(-1)
        flat[rng.integers(flat.size, size=2)] = rng.choice([np.nan, np.inf, -np.inf], 2)

    def pick():
        return known[max(int(rng.integers(len(known))), int(rng.integers(len(known))))]

    def like(x):
        candidates = [e for e in known if e.sizes == x.sizes]
        return candidates[rng.integers(len(candidates))]

    def convolution(x):
        groups = x.sizes[1] if rng.random() < 0.3 else 1
        channels = x.sizes[1] if groups > 1 else int(rng.choice([3, 8, 16]))
        window, dilation = int(rng.choice([1, 3])), int(rng.choice([1, 2]))
        pad = (window - 1) * dilation // 2
        w = weight((channels, x.sizes[1] // groups, window, window))
        b = weight((1, channels, 1, 1)) if rng.random() < 0.7 else None
        fused = rng.choice([None, dml.ActivationRelu(), dml.ActivationTanh()])
        y = graph.convolution(
            x, w, b, dilations=(dilation,) * 2, start_padding=(pad,) * 2, end_padding=(pad,) * 2,
            group_count=groups, fused_activation=fused,
        )  # fmt: skip
        return graph.multiply(y, scalar(0.3, y.sizes))

    def scalar(value, sizes):
        one = graph.constant(np.array([value], kind))
        return graph.reinterpret(one, sizes=sizes, strides=(0,) * len(sizes))

    def pooling(x):
        window = {"window_size": (3, 3), "start_padding": (1, 1), "end_padding": (1, 1)}
        if rng.random() < 0.5:
            return graph.max_pooling(x, strides=(1, 1), **window)
        return graph.average_pooling(
            x, strides=(1, 1), include_padding=bool(rng.integers(2)), **window
        )

    def normalization(x):
        channels = (1, x.sizes[1], 1, 1)
        wide = [
            graph.reinterpret(weight((x.sizes[1],), low), sizes=x.sizes, strides=(0, 1, 0, 0))
            if rng.random() < 0.5 else weight(channels, low)
            for low in (-1.0, 0.5, -1.0, -1.0)
        ]  # fmt: skip
        if rng.random() < 0.5:
            fused = rng.choice([None, dml.ActivationRelu()])
            return graph.batch_normalization(
                x, *wide, spatial=True, epsilon=1e-3, fused_activation=fused
            )
        return graph.mean_variance_normalization1(
            x, *wide[2:], axes=(1, 2, 3), normalize_variance=True, epsilon=1e-2
        )

    def gemm(x):
        last = x.sizes[3]
        w = graph.reinterpret(weight((last, last)), sizes=(*x.sizes[:2], last, last),
                              strides=(0, 0, last, 1))  # fmt: skip
        return graph.multiply(graph.gemm(x, w, trans_b="TRANSPOSE"), scalar(0.5, x.sizes))

    def activation(x):
        name = rng.choice(["relu", "sigmoid", "tanh", "leaky_relu", "elu", "gelu", "softsign",
                           "hard_sigmoid", "scaled_elu", "celu", "softplus"])  # fmt: skip
        return getattr(graph, f"activation_{name}")(x)

    def arithmetic(x):
        name = rng.choice(["add", "subtract", "multiply", "max", "min", "mean"])
        y = getattr(graph, name)(x, like(x))
        return graph.multiply(y, scalar(0.5, y.sizes)) if name == "multiply" else y

    def moved(x):
        if rng.random() < 0.5:
            halves = graph.split(x, axis=2, output_axis_sizes=[1, x.sizes[2] - 1])
            return graph.join([halves[1], halves[0]], axis=2)
        if x.desc.strides is not None or x.sizes[2] != x.sizes[3]:
            return x
        a, b, c, d = x.desc.element_strides
        return graph.identity(graph.reinterpret(x, None, x.sizes, (a, b, d, c)))

    def simple(x):
        choice = rng.integers(5)
        if choice == 0:
            return graph.clip(x, min=-0.5, max=1.5)
        if choice == 1:
            return graph.abs(x)
        if choice == 2:
            return graph.divide(x, scalar(0.7, x.sizes))
        if choice == 3:
            return graph.activation_softmax1(x, axes=(1,))
        recip = graph.recip(graph.add(graph.abs(x), scalar(1.0, x.sizes)))
        return graph.multiply(like(x), recip)

    makers = [convolution, convolution, pooling, normalization, gemm, activation, activation,
              arithmetic, arithmetic, moved, simple, simple]  # fmt: skip
    for _ in range(rng.integers(10, 41)):
        made_next = makers[rng.integers(len(makers))](pick())
        known.append(made_next)
    made = [e for e in known[2:] if e._node is not None]
    results = {f"y{i}": e for i, e in enumerate([made[-1], made[len(made) // 2]])}
    return graph.build(**results), arrays, weights
