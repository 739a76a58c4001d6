"""What has no plain memory, of other libraries, is refused by name wherever it comes in."""

import numpy as np
import pytest

import anydml as dml

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # prototypes, told by PyTorch

TENSOR = dml.TensorDesc("FLOAT32", (3,))
COPY = dml.Device("cpu").create_operator(
    dml.Split(input_tensor=TENSOR, output_tensors=[TENSOR], axis=0)
)


class Wrapper(torch.Tensor):
    """A subclass that holds another tensor, and answers for it in everything."""

    @staticmethod
    def __new__(cls, inner):
        tensor = torch.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)
        tensor.inner = inner
        return tensor

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        inner = [a.inner if isinstance(a, cls) else a for a in args]
        return function(*inner, **(kwargs or {}))


class OwnMemory(torch.Tensor):
    """A subclass with memory, whose operations go elsewhere."""

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError("not to be called")


class Plain(torch.Tensor):
    pass


def floats():
    return torch.tensor([1.0, 2.0, 3.0])


def inside(transform):
    """Runs a check on the tensor that a transformation hands to its function."""

    def run(check):
        def function(tensor):
            check(tensor)
            return tensor.sum()

        transform(function)(floats())

    return run


def passes(make):
    return lambda check: check(make())


def fake():
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return floats()


def freed(size):
    tensor = floats()
    tensor.untyped_storage().resize_(size)
    return tensor


# How to get one, and what the message says.
KINDS = {
    "sparse": (passes(lambda: floats().to_sparse()), "use .to_dense()"),
    "compressed": (passes(lambda: torch.eye(3).to_sparse_csr()), "use .to_dense()"),
    "mkldnn": (passes(lambda: floats().to_mkldnn()), "use .to_dense()"),
    "quantized": (
        passes(lambda: torch.quantize_per_tensor(floats(), 0.1, 0, torch.qint8)),
        "a quantized tensor",
    ),
    "nested": (passes(lambda: torch.nested.nested_tensor([floats(), floats()])), "a nested tensor"),
    "storage freed": (passes(lambda: freed(0)), "whose storage holds its elements, got one of 0 b"),
    "storage cut": (passes(lambda: freed(8)), "whose storage holds its elements, got one of 8 b"),
}

# What PyTorch's dispatcher takes (tests/libraries): nothing to write to, and nothing to bind.
DISPATCHED = {
    "wrapper": (passes(lambda: Wrapper(floats())), "a wrapper subclass"),
    "own dispatch": (
        passes(lambda: torch.Tensor._make_subclass(OwnMemory, floats())),
        "a wrapper subclass",
    ),
    "meta": (passes(lambda: torch.zeros(3, device="meta")), "a tensor on meta"),
    "conjugate": (passes(lambda: torch.tensor([1 + 2j] * 3).conj()), "the conjugate bit"),
    "negative": (passes(lambda: torch.tensor([1 + 2j] * 3).conj().imag), "the negative bit"),
    "zero": (passes(lambda: torch._efficientzerotensor(3)), "a tensor with plain memory"),
    "functional": (inside(torch.func.functionalize), "of a transformation"),
    "fake": (passes(fake), "a fake tensor, which has no memory"),
    "batched": (
        lambda check: torch.vmap(lambda t: [check(t), t][1])(torch.zeros(2, 3)),
        "of a transformation",
    ),
    "grad": (inside(torch.func.grad), "one that requires grad"),
    "requires grad": (passes(lambda: floats().requires_grad_()), "requires grad"),
    "in a graph": (passes(lambda: floats().requires_grad_() * 2), "requires grad"),
}

X = np.array([1.0, 2.0, 3.0], "f4")
I = np.array([0, 1, 2])  # noqa: E741  # indices

OPERANDS = {
    "top_k": lambda t: dml.top_k(t, 1),
    "nonzero_coordinates": dml.nonzero_coordinates,
    "split": lambda t: dml.split(t, 1),
    "join": lambda t: dml.join([t]),
    "join second": lambda t: dml.join([X, t]),
    "gather": lambda t: dml.gather(t, [0]),
    "gather indices": lambda t: dml.gather(X, t),
    "gather_elements": lambda t: dml.gather_elements(t, I),
    "gather_nd": lambda t: dml.gather_nd(t, [[0]]),
    "scatter_elements": lambda t: dml.scatter_elements(t, I, X),
    "scatter_elements updates": lambda t: dml.scatter_elements(X, I, t),
    "scatter_nd": lambda t: dml.scatter_nd(t, I[:, None], X),
}
OUTS = {
    "split": lambda t: dml.split(X, 1, out=[t]),
    "join": lambda t: dml.join([X], out=t),
    "gather": lambda t: dml.gather(X, I, out=t),
    "gather_elements": lambda t: dml.gather_elements(X, I, out=t),
    "gather_nd": lambda t: dml.gather_nd(X, I[:, None], out=t),
    "scatter_elements": lambda t: dml.scatter_elements(X, I, X, out=t),
    "scatter_nd": lambda t: dml.scatter_nd(X, I[:, None], X, out=t),
    "top_k": lambda t: dml.top_k(X, 3, out=(t, np.zeros(3, "u4"))),
    "nonzero_coordinates": lambda t: dml.nonzero_coordinates(X, out=t),
}
BINDINGS = {
    "call": COPY.compile(),
    "input": lambda t: COPY.compile().dispatch(InputTensor=t, OutputTensors=[X.copy()]),
    "output": lambda t: COPY.compile().dispatch(InputTensor=X, OutputTensors=[t]),
}


@pytest.mark.parametrize("kind", [*KINDS, *DISPATCHED])
def test_refused_by_name(kind):
    make, words = {**KINDS, **DISPATCHED}[kind]
    calls = OUTS if kind in DISPATCHED else {**OPERANDS, **OUTS}
    checked = []

    def check(tensor):
        for name, call in calls.items():
            with pytest.raises(dml.ArgumentTypeError) as error:
                call(tensor)
            assert words in str(error.value), (name, error.value)
        for name, call in BINDINGS.items():
            with pytest.raises(dml.BindingError) as bound:
                call(tensor)
            assert words in str(bound.value), (name, bound.value)
            assert str(bound.value).startswith(("InputTensor: ", "OutputTensors[0]: ")), name
        checked.append(tensor)

    make(check)
    assert checked


PLAIN = {
    "tensor": floats,
    "frozen parameter": lambda: torch.nn.Parameter(floats(), requires_grad=False),
    "subclass": lambda: floats().as_subclass(Plain),
    "detached": (floats().requires_grad_() * 1).detach,
    "view": lambda: torch.tensor([9.0, 1.0, 2.0, 3.0, 9.0])[1:4],
    "strided": lambda: torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).T[:, 0],
    "at the end of its storage": lambda: torch.tensor([9.0, 9.0, 1.0, 2.0, 3.0])[2:],
    "conjugated and resolved": lambda: torch.tensor([1 + 0j, 2, 3]).conj().resolve_conj().real,
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_tensors_are_taken(name):
    tensor = PLAIN[name]()
    assert dml.join([tensor, tensor]).tolist() == [1, 2, 3, 1, 2, 3]
    assert isinstance(dml.join([tensor]), torch.Tensor)
    assert dml.top_k(tensor, 1).values.tolist() == [3]
    assert COPY.compile()(tensor)[0].tolist() == [1, 2, 3]
    out = PLAIN[name]()
    dml.gather(X, [2, 2, 2], out=out)
    assert out.tolist() == [3, 3, 3]


def test_parameters_and_inference_mode():
    parameter = torch.nn.Parameter(floats())
    with torch.no_grad():
        assert dml.join([parameter]).tolist() == [1, 2, 3]
    assert dml.join([parameter]).requires_grad
    with torch.inference_mode():
        assert dml.join([floats()]).tolist() == [1, 2, 3]
    assert dml.join([torch.ones(3).expand(2, 3)]).tolist() == [[1, 1, 1]] * 2
    assert dml.join([torch.ones(0, 3), torch.ones(1, 3)]).tolist() == [[1, 1, 1]]


def test_jax_tracers_and_deleted_arrays():
    jax = pytest.importorskip("jax")

    def check(value):
        for call in OUTS.values():  # as operands they are taken: tests/libraries/test_jax.py
            with pytest.raises(dml.ArgumentTypeError, match="a tracer"):
                call(value)
        for call in BINDINGS.values():
            with pytest.raises(dml.BindingError, match="a tracer"):
                call(value)
        checked.append(value)
        return value.sum()

    checked = []
    jax.jit(check)(X)
    jax.grad(check)(X)
    jax.vmap(lambda v: [check(v), v][1])(np.ones((2, 3), "f4"))
    assert len(checked) == 3
    gone = jax.numpy.asarray(X) + 1
    gone.delete()
    with pytest.raises(dml.ArgumentTypeError, match=r"x: .*deleted"):
        dml.top_k(gone, 1)
    with pytest.raises(
        dml.BindingError,
        match=r"InputTensor: .*deleted",
    ):
        COPY.compile()(gone)


def test_the_argument_is_named_once():
    outs = (torch.zeros(1, device="meta"), None)
    with pytest.raises(dml.ArgumentTypeError, match=r"^out\[0\]: expected a tensor on the CPU"):
        dml.top_k(torch.zeros(3), 1, out=outs)


class Interface:
    """An array interface over a buffer, whose offset and strides NumPy takes as they are."""

    def __init__(self, **changes):
        interface = np.zeros((3, 4), np.float32).__array_interface__
        self.__array_interface__ = {**interface, "data": bytes(48), **changes}


@pytest.mark.parametrize("changes", [{"offset": 4}, {"offset": 2**62}, {"strides": (32, 4)},
                                     {"strides": (-16, 4)}, {"shape": (4, 4)}])  # fmt: skip
def test_an_interface_that_leaves_its_buffer(changes):
    assert dml.split(Interface(), 3)[0].tolist() == [[0.0] * 4]
    with pytest.raises(dml.ArgumentTypeError, match="within its buffer of 48"):
        dml.split(Interface(**changes), 1)
