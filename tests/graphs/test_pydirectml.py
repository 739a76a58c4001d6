"""PyDirectML's module: names, arguments, arithmetic, bindings, and programs that are run."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import anydml
import anydml.pydirectml as dml

FLOAT32 = dml.TensorDataType.FLOAT32
X = np.array([[1, -2, 3], [-4, 5, 0.5]], np.float32).reshape(1, 1, 2, 3)
Y = np.array([[2, 4, -8], [3, 1, 2]], np.float32).reshape(1, 1, 2, 3)

# The arguments in order; those with `=` may be left out.
FUNCTIONS = {
    "input_tensor": "scope input_index tensor_desc",
    "convolution": "input filter bias= mode= direction= strides= dilations= start_padding= "
    "end_padding= output_padding= group_count= fused_activation= output_sizes=",
    "up_sample_2d": "input scale_size interpolation_mode",
    "activation_relu": "input",
    "activation_sigmoid": "input",
    "activation_identity": "input",
    "add": "a b fused_activation=",
    "subtract": "a b",
    "activation_tanh": "input",
    "multiply": "a b",
    "divide": "a b",
    "padding": "input padding_mode padding_value start_padding end_padding",
    "mean_variance_normalization": "input scale= bias= axes= normalize_variance= epsilon= "
    "fused_activation=",
    "slice": "input input_window_offsets input_window_sizes input_window_strides",
    "value_scale_2d": "input scale bias",
    "activation_linear": "input alpha beta",
    "batch_normalization": "input mean variance scale bias spatial epsilon fused_activation=",
    "local_response_normalization": "input cross_channel local_size alpha beta bias",
    "gemm": "a b c= trans_a= trans_b= alpha= beta= fused_activation=",
    "average_pooling": "input strides window_sizes start_padding end_padding include_padding",
    "max_pooling": "input window_sizes strides= start_padding= end_padding= dilations= "
    "output_indices=",
    "reinterpret": "input new_type new_size new_strides",
    "activation_soft_max": "input",
    "join": "input axis",
    "gru": "input weight recurrence bias= hidden_init= sequence_lengths= activation_descs= "
    "direction= linear_before_reset= output_options=",
    "gather": "input indices axis index_dimensions",
}

ENUMERATIONS = {
    "TensorDataType": "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 "
    "INT64",
    "TensorFlags": "NONE OWNED_BY_DML",
    "MatrixTransform": "NONE TRANSPOSE",
    "RecurrentNetworkDirection": "FORWARD BACKWARD BIDIRECTIONAL",
    "OutputOptions": "Both Sequence Single",
    "ConvolutionMode": "CONVOLUTION CROSS_CORRELATION",
    "ConvolutionDirection": "FORWARD BACKWARD",
    "InterpolationMode": "NEAREST_NEIGHBOR LINEAR",
    "PaddingMode": "CONSTANT EDGE REFLECTION",
    "ExecutionFlags": "NONE ALLOW_HALF_PRECISION_COMPUTATION DISABLE_META_COMMANDS "
    "DESCRIPTORS_VOLATILE",
    "OperatorType": "INVALID ELEMENT_WISE_IDENTITY ACTIVATION_RELU GEMM LSTM ONE_HOT RESAMPLE",
}

CLASSES = (
    "Binding", "Device", "GraphBuilder", "Model", "Dimensions", "TensorPolicy", "TensorDesc",
    "TensorData", "Expression", "Size2D", "FusedActivation", "MaxPoolingOutputs", "GRUOutputs",
)  # fmt: skip


class Graph:
    """A graph with an input for each array."""

    def __init__(self, *arrays, data_type=FLOAT32):
        self.device = dml.Device()
        self.builder = dml.GraphBuilder(self.device)
        self.inputs, self.bindings = [], []
        for i, array in enumerate(arrays):
            desc = dml.TensorDesc(data_type, list(array.shape))
            self.inputs.append(dml.input_tensor(self.builder, i, desc))
            self.bindings.append(dml.Binding(self.inputs[-1], array))

    def model(self, *outputs):
        return self.builder.build(dml.NONE, list(outputs) or [-self.inputs[0]])

    def run(self, *outputs):
        model = self.model(*outputs)
        results = self.device.compute(model, self.bindings, list(outputs))
        return [np.array(result) for result in results]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_its_arguments(name):
    parameters = inspect.signature(getattr(dml, name)).parameters.values()
    got = [f"{p.name}{'' if p.default is p.empty else '='}" for p in parameters]
    assert got == FUNCTIONS[name].split()


def test_the_module_has_its_names():
    assert {*FUNCTIONS, *ENUMERATIONS, *CLASSES} <= set(dml.__all__)
    for name, members in ENUMERATIONS.items():
        assert set(members.split()) <= getattr(dml, name).__members__.keys(), name
        if name != "OutputOptions":  # whose members the module does not have
            assert set(members.split()) <= set(dml.__all__)
    assert not hasattr(dml, "Both")
    # Of equal names the one that is exported last.
    assert dml.NONE is dml.ExecutionFlags.NONE
    assert dml.FORWARD is dml.ConvolutionDirection.FORWARD
    assert dml.CONVOLUTION is dml.OperatorType.CONVOLUTION
    assert int(dml.TensorDataType.INT64) == 11


def test_tensor_descs():
    sizes, flags = [2, 3, 4, 5], dml.TensorFlags.OWNED_BY_DML
    plain = dml.TensorDesc(FLOAT32, sizes)
    assert (plain.data_type, plain.flags, plain.sizes) == (FLOAT32, dml.TensorFlags.NONE, sizes)
    assert plain.strides is None
    assert plain.total_tensor_size_in_bytes == 480
    assert plain.guaranteed_base_offset_alignment == 0
    assert repr(plain) == "dml.TensorDesc of type 1 and shape [2,3,4,5] with flags 0"
    owned = dml.TensorDesc(FLOAT32, flags, sizes)
    assert (owned.flags, owned.sizes) == (flags, sizes)
    strided = dml.TensorDesc(FLOAT32, sizes, [3, 1, 0, 0])
    assert strided.strides == [3, 1, 0, 0]
    assert strided.total_tensor_size_in_bytes == 24
    full = dml.TensorDesc(FLOAT32, flags, sizes, [60, 20, 5, 1], 512, 16)
    assert full.total_tensor_size_in_bytes == 512
    assert full.guaranteed_base_offset_alignment == 16
    assert dml.TensorDesc(FLOAT32, sizes, None).strides is None
    for strides in (np.array([60, 20, 5, 1]), iter([60, 20, 5, 1])):
        desc = dml.TensorDesc(FLOAT32, np.array(sizes), strides)
        assert (desc.sizes, desc.strides) == (sizes, [60, 20, 5, 1])
    desc = dml.TensorDesc(
        data_type=FLOAT32, flags=flags, sizes=sizes, tensor_policy=dml.TensorPolicy.default
    )
    assert (desc.flags, desc.strides) == (flags, None)


@pytest.mark.parametrize(
    ("sizes", "strides"),
    [([5], [1]), ([2, 3], [3, 1]), ([2, 3, 4], [12, 1, 3]), ([2, 3, 4, 5], [60, 1, 15, 3]),
     ([2, 3, 4, 5, 6], [360, 1, 90, 18, 3])],
)  # fmt: skip
def test_interleaved_channels(sizes, strides):
    policy = dml.TensorPolicy.interleaved_channel
    assert dml.TensorDesc(FLOAT32, sizes, policy).strides == strides
    assert dml.TensorDesc(FLOAT32, dml.OWNED_BY_DML, sizes, policy).strides == strides


@pytest.mark.parametrize(
    ("values", "fields"),
    [((), {}), (([1], None, 1), {"strides": [1]}), (([1],), {"size": 1}),
     (([1], [1], 4, 0, 5), {}), (([1],), {"sizes": [1]})],
)  # fmt: skip
def test_tensor_descs_that_are_not_taken(values, fields):
    with pytest.raises(anydml.AnyDMLError, match="TensorDesc"):
        dml.TensorDesc(FLOAT32, *values, **fields)


@pytest.mark.parametrize(
    "formula",
    [
        lambda a, b: a + b, lambda a, b: a - b, lambda a, b: a * b, lambda a, b: a / b,
        lambda a, b: a + 2, lambda a, b: a - 2.5, lambda a, b: a * 3, lambda a, b: b / 4,
        lambda a, b: 2 + a, lambda a, b: 2.5 - a, lambda a, b: 3 * a, lambda a, b: 6 / b,
        lambda a, b: -a, lambda a, b: -(a + 1) / b * 2,
    ],
)  # fmt: skip
def test_arithmetic(formula):
    graph = Graph(X, Y)
    (found,) = graph.run(formula(*graph.inputs))
    np.testing.assert_allclose(found, formula(X, Y), rtol=1e-6)


def test_remainders_have_the_sign_of_the_first():
    graph = Graph(X, Y)
    (found,) = graph.run(graph.inputs[0] % graph.inputs[1])
    np.testing.assert_array_equal(found, np.fmod(X, Y))


def test_arithmetic_in_place():
    graph = Graph(X, Y)
    a, b = graph.inputs
    total = a + b
    other = total
    total += 1
    total -= a
    total *= 2
    total /= b
    total += b
    assert other is total, "the expression is changed, not replaced"
    (found,) = graph.run(other)
    np.testing.assert_allclose(found, (X + Y + 1 - X) * 2 / Y + Y, rtol=1e-6)


@pytest.mark.parametrize("other", ["x", None, 1j, np.ones(2)])
def test_arithmetic_with_what_is_no_number(other):
    (x,) = Graph(X).inputs
    with pytest.raises(TypeError):
        x + other
    with pytest.raises(TypeError):
        x += other


def test_outputs_in_their_order_and_inputs_by_their_index():
    device = dml.Device(False, True)
    assert repr(device) == "dml.Device on CPU"
    assert repr(dml.Device()) == "dml.Device on GPU"
    builder = dml.GraphBuilder(device)
    desc = dml.TensorDesc(FLOAT32, [1, 1, 2, 3])
    owned = dml.TensorDesc(FLOAT32, dml.OWNED_BY_DML, [1, 1, 2, 3])
    b = dml.input_tensor(builder, 2, owned)
    unread = dml.input_tensor(builder, 1, desc)
    a = dml.input_tensor(builder, 0, desc)
    outputs = [dml.subtract(a, b), dml.multiply(a, b)]
    model = builder.build(dml.ExecutionFlags.NONE, outputs)
    bindings = [dml.Binding(a, X), None, dml.Binding(b, Y)]
    for _ in range(2):
        difference, product = device.compute(model, bindings, outputs)
        np.testing.assert_array_equal(difference, X - Y)
        np.testing.assert_array_equal(product, X * Y)
    assert memoryview(difference).tolist() == (X - Y).tolist()
    assert isinstance(product, dml.TensorData)
    with pytest.raises(anydml.BindingError, match=r"inputs\[2\]: expected a Binding"):
        device.compute(model, bindings[:2], outputs)
    with pytest.raises(anydml.ArgumentError, match="that were passed to build"):
        device.compute(model, bindings, outputs[:1])
    with pytest.raises(anydml.ArgumentError, match="input_index: expected an unused index, got 1"):
        dml.input_tensor(builder, 1, desc)
    assert unread.get_output_desc().sizes == [1, 1, 2, 3]


@pytest.mark.parametrize("data", [X.astype(np.float64), X.tolist(), X[0, 0], X.astype(">f4"),
                                  np.asfortranarray(X), X.ravel()])  # fmt: skip
def test_bindings_convert(data):
    graph = Graph(X)
    graph.bindings = [dml.Binding(graph.inputs[0], data)]
    np.testing.assert_array_equal(graph.run(dml.activation_identity(*graph.inputs))[0], X)


def test_bindings_of_other_types_and_layouts():
    graph = Graph(X)
    desc = dml.TensorDesc(dml.TensorDataType.UINT32, [1, 1, 1, 2])
    indices = dml.input_tensor(graph.builder, 1, desc)
    graph.bindings.append(dml.Binding(indices, [2.0, 0.0]))
    bias = dml.input_tensor(graph.builder, 2, dml.TensorDesc(FLOAT32, [1, 1, 2, 2], [0, 0, 1, 0]))
    graph.bindings.append(dml.Binding(bias, np.array([10, 20])))
    y = dml.gather(graph.inputs[0], indices, 3, 1) + bias
    np.testing.assert_array_equal(graph.run(y)[0], X[..., [2, 0]] + [[[[10], [20]]]])


@pytest.mark.parametrize("flag", [0, 1, 2, 4])
def test_execution_flags(flag):
    builder = dml.GraphBuilder(dml.Device())
    x = dml.input_tensor(builder, 0, dml.TensorDesc(FLOAT32, [1, 2]))
    model = builder.build(dml.ExecutionFlags(flag), [dml.activation_relu(x)])
    assert model._graph.program.allows_half == (flag == 1)


@pytest.mark.parametrize("data", [X[..., :2], np.zeros(7), [], 3.0])
def test_bindings_of_the_wrong_size(data):
    (x,) = Graph(X).inputs
    with pytest.raises(
        anydml.BindingError, match=r"input0: expected 6 elements for dml\.TensorDesc"
    ):
        dml.Binding(x, data)


def test_tensor_data():
    data = dml.TensorData([[1, 2], [3, 4]])
    assert data.dtype == np.float32
    assert np.array(data).tolist() == [[1, 2], [3, 4]]
    assert memoryview(data).format == "f"


def test_sizes_may_be_arrays_of_numpy():
    scope = dml.GraphBuilder(dml.Device())
    x = dml.input_tensor(scope, 0, dml.TensorDesc(FLOAT32, [1, 1, 2, 3]))
    pooled = dml.max_pooling(x, np.array([2, 2]), strides=np.array([1, 1])).values
    assert pooled.get_output_desc().sizes == [1, 1, 1, 2]


def test_max_pooling_makes_indices_on_demand():
    graph = Graph(X)
    plain = dml.max_pooling(graph.inputs[0], [2, 2])
    both = dml.max_pooling(graph.inputs[0], window_sizes=[1, 2], output_indices=True)
    found = graph.run(plain.values, both.values, both.indices)
    assert [array.ravel().tolist() for array in found] == [[5, 5], [1, 3, 5, 5], [0, 2, 4, 4]]
    assert found[2].dtype == np.uint32
    with pytest.raises(anydml.ArgumentTypeError, match="an absent output"):
        plain.indices + 1


def test_gated_recurrent_units():
    rng = np.random.default_rng(0)
    shapes = (1, 5, 2, 3), (1, 1, 12, 3), (1, 1, 12, 4)
    graph = Graph(*(rng.normal(size=shape) for shape in shapes))
    gates = [dml.FusedActivation(dml.OperatorType.ACTIVATION_SIGMOID),
             dml.FusedActivation(dml.OperatorType.ACTIVATION_TANH)]  # fmt: skip

    def gru(options):
        return dml.gru(*graph.inputs, activation_descs=gates, direction=dml.FORWARD,
                       output_options=options)  # fmt: skip

    both, last = gru(dml.OutputOptions.Both), gru(dml.OutputOptions.Single)
    steps = gru(dml.OutputOptions.Sequence)
    found = graph.run(both.sequence, both.single, last.single, steps.sequence)
    assert [array.shape for array in found] == [(5, 1, 2, 4), (1, 1, 2, 4)] * 1 + [
        (1, 1, 2, 4), (5, 1, 2, 4)
    ]  # fmt: skip
    np.testing.assert_array_equal(found[0], found[3])
    np.testing.assert_array_equal(found[0][-1:], found[2])
    with pytest.raises(anydml.ArgumentTypeError, match="gru: expected activation_descs"):
        dml.gru(*graph.inputs)


def test_fused_activations():
    graph = Graph(X, Y)
    leaky = dml.FusedActivation(dml.OperatorType.ACTIVATION_LEAKY_RELU, 0.5)
    linear = dml.FusedActivation(dml.OperatorType.ACTIVATION_LINEAR, param_1=2, param_2=1)
    total = X + Y
    found = graph.run(dml.add(*graph.inputs), dml.add(*graph.inputs, leaky),
                      dml.add(*graph.inputs, fused_activation=linear))  # fmt: skip
    np.testing.assert_array_equal(found[0], total)
    np.testing.assert_array_equal(found[1], np.where(total < 0, total / 2, total))
    np.testing.assert_array_equal(found[2], total * 2 + 1)
    with pytest.raises(anydml.AnyDMLError, match="RoiAlignGrad"):
        dml.add(*graph.inputs, dml.FusedActivation(dml.OperatorType.ROI_ALIGN_GRAD))


def test_what_is_wrong_is_said_where_it_is():
    graph = Graph(X, Y)
    with pytest.raises(anydml.InvalidDescriptorError, match=r"JOIN.InputTensors\[1\].Sizes"):
        dml.join([graph.inputs[0], dml.activation_soft_max(
            dml.slice(graph.inputs[1], [0] * 4, [1, 1, 1, 3], [1] * 4))], 3)  # fmt: skip
    with pytest.raises(anydml.ArgumentTypeError, match="epsilon is missing"):
        dml.mean_variance_normalization(graph.inputs[0], normalize_variance=1)
    with pytest.raises(anydml.ArgumentTypeError, match="expected an Expression, got 3"):
        dml.activation_relu(3)
    with pytest.raises(TypeError, match=r"relu\(input\): got an unexpected .* 'inputs'"):
        dml.activation_relu(graph.inputs[0], inputs=1)
    for call, message in (
        (lambda: dml.join([], 1), "join: input: expected at least one Expression, got none"),
        (lambda: dml.TensorDesc("f", [1]), "data_type: expected a TensorDataType"),
        (lambda: dml.TensorDesc(dml.TensorDataType.UNKNOWN, [1]), "data_type: expected"),
        (lambda: dml.TensorDesc(FLOAT32, 1), "sizes: expected a sequence, got 1"),
        (lambda: dml.Binding(graph.inputs[0], "a"), "input0: expected numbers, got 'a'"),
        (lambda: graph.builder.build(dml.NONE, 3), "outputs: expected a sequence, got 3"),
        (lambda: graph.device.compute(graph.model(), None, []), "inputs: expected a sequence"),
    ):
        with pytest.raises((anydml.ArgumentTypeError, anydml.BindingError), match=f"^{message}"):
            call()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("relu", "did you mean 'activation_relu'"),
        ("softmax", "did you mean 'activation_soft_max'"),
        ("Convolution", "did you mean 'convolution'"),
        ("lstm", "anydml.GraphBuilder has 'lstm'"),
        ("nothing_like_it", "$"),
    ],
)
def test_names_that_it_lacks(name, hint):
    with pytest.raises(AttributeError, match=f"PyDirectML has no '{name}'.*{hint}"):
        getattr(dml, name)


def test_the_device_is_that_of_the_variable(monkeypatch):
    monkeypatch.setenv("ANYDML_DEVICE", "reference")
    graph = Graph(X)
    assert graph.builder.build(dml.NONE, [-graph.inputs[0]])._graph.device.kind == "reference"
    monkeypatch.setenv("ANYDML_DEVICE", "abacus")
    with pytest.raises(anydml.DeviceError, match=r"ANYDML_DEVICE: .*'abacus'"):
        dml.Device()


def test_on_xla(monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.setenv("ANYDML_DEVICE", "xla")
    graph = Graph(X)
    x = graph.inputs[0]
    assert graph.device._device.kind == "xla"
    (found,) = graph.run(dml.activation_tanh(x) * x + x)
    np.testing.assert_allclose(found, np.tanh(X) * X + X, 1e-6, 1e-6)


PROGRAM = """
import sys
import pydirectml as dml
import helper
print(__name__, sys.argv, helper.NAME)
device = dml.Device(True, True)
builder = dml.GraphBuilder(device)
x = dml.input_tensor(builder, 0, dml.TensorDesc(dml.TensorDataType.FLOAT32, [2]))
op = builder.build(dml.ExecutionFlags.NONE, [x + 1])
"""


@pytest.fixture
def program(tmp_path):
    def run(text, *arguments, **environment):
        folder = tmp_path / "programs"
        folder.mkdir(exist_ok=True)
        (folder / "main.py").write_text(PROGRAM + text, encoding="utf-8")
        (folder / "helper.py").write_text("NAME = __name__\n", encoding="utf-8")
        return subprocess.run(
            [sys.executable, "-m", "anydml.pydirectml", *arguments], cwd=tmp_path, timeout=120,
            capture_output=True, text=True, check=False, env={"PATH": "", **environment},
        )  # fmt: skip

    return run


def test_a_program_runs_as_python_runs_it(program):
    done = program("sys.exit(3)", "programs/main.py", "-x", "a b")
    assert done.stdout == "__main__ ['programs/main.py', '-x', 'a b'] helper\n"
    assert (done.returncode, done.stderr) == (3, "")


def test_errors_of_programs(program):
    done = program("device.compute(op, [dml.Binding(x, [1, 2, 3])], [])", "programs/main.py")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: programs/main.py, line 10: input0: expected 2 elements for dml.TensorDesc of type "
        "1 and shape [2] with flags 0, got 3 of shape (3,)\n"
    )
    done = program("1 / 0", "programs/main.py")
    assert done.returncode == 1
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "programs/main.py"')
    assert done.stderr.endswith("ZeroDivisionError: division by zero\n")
    done = program("sys.modules['PIL'] = None\nfrom PIL import Image", "programs/main.py")
    assert done.stderr.startswith("Error: programs/main.py: expected the module PIL, which is not")
    assert done.stderr.endswith("pip install 'anydml[image]'`\n")


def test_outputs_are_saved(program, tmp_path):
    text = """
import os
os.chdir("programs")
y = x * 2
z = y + 1
both = builder.build(dml.ExecutionFlags.NONE, [y, z])
for value in (1, 5):
    device.compute(both, inputs=[dml.Binding(x, [value, value])], outputs=[y, z])
"""
    done = program(text, "--save-outputs", "out/a", "programs/main.py", "-x")
    assert (done.returncode, done.stderr) == (0, "")
    assert "['programs/main.py', '-x']" in done.stdout
    found = {path.name: np.load(path).tolist() for path in (tmp_path / "out" / "a").iterdir()}
    assert found == {
        "compute0_output0.npy": [2, 2], "compute0_output1.npy": [3, 3],
        "compute1_output0.npy": [10, 10], "compute1_output1.npy": [11, 11],
    }  # fmt: skip
    done = program("", "--save-outputs", "programs/main.py", "programs/main.py")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: --save-outputs: ")
    assert "File exists: '" in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="other systems show images without xdg-open")
@pytest.mark.parametrize("display", [{}, {"DISPLAY": ":9"}])
def test_images_are_shown_on_a_display_alone(program, tmp_path, display):
    pytest.importorskip("PIL")
    viewer = tmp_path / "xdg-open"
    viewer.write_text("")
    viewer.chmod(0o755)
    text = """
import subprocess
subprocess.Popen = lambda command: print("opened")
from PIL import Image
Image.new("L", (2, 2)).show()
"""
    done = program(text, "programs/main.py", PATH=str(tmp_path), **display)
    assert (done.returncode, done.stderr) == (0, "")
    assert ("opened" in done.stdout) == bool(display)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a display")
@pytest.mark.parametrize("display", [{}, {"DISPLAY": ":9"}])
def test_windows_of_opencv_are_left_out_without_a_display(program, tmp_path, display):
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "cv2.py").write_text("""
WND_PROP_VISIBLE = 4
def imshow(name, image):
    print("shown")
def waitKey(delay=0):
    return 27
def resize(image):
    return "resized"
namedWindow = getWindowProperty = destroyAllWindows = print
""")
    text = """
import cv2
print(cv2.resize(0))
cv2.namedWindow("result")
frames = 0
while frames < 3:  # a video, until a key is pressed
    frames += 1
    cv2.imshow("result", [[0]])
    if cv2.waitKey(1) & 0xFF == ord("q"):
        break
print(frames, "frames")
while cv2.waitKey() != ord("q"):
    pass
while cv2.getWindowProperty("result", cv2.WND_PROP_VISIBLE) >= 1:
    pass
cv2.destroyAllWindows()
"""
    if display:
        text = text[: text.index("print(frames")]
    done = program(text, "--save-outputs", "out", "programs/main.py", **display)
    assert (done.returncode, done.stderr) == (0, "")
    assert "resized\n" in done.stdout
    assert ("shown" in done.stdout) == bool(display)
    assert ("3 frames" in done.stdout) != bool(display)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have a display")
def test_matplotlib_shows_nothing_and_tkinter_has_one_message_without_a_display(program):
    text = """
import os, warnings
print(os.environ["MPLBACKEND"])
warnings.warn("FigureCanvasAgg is non-interactive, and thus cannot be shown", UserWarning)
"""
    done = program(text, "programs/main.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\nAgg\n")
    assert program(text, "programs/main.py", MPLBACKEND="svg").stdout.endswith("\nsvg\n")
    pytest.importorskip("tkinter")
    done = program("import tkinter\ntkinter.Tk()", "programs/main.py")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: programs/main.py, line 11: no display name")
    assert done.stderr.endswith("; tkinter needs one, such as xvfb-run's\n")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [(), ("-v",), ("none.py",), ("programs",), ("--save-outputs",), ("--save-outputs", "out")],
)
def test_wrong_usage(program, arguments):
    done = program("", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: python -m anydml.pydirectml [--save-outputs DIR] SCRIPT")


def test_help(program):
    assert program("", "--help").returncode == 0
