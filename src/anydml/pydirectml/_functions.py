"""The functions: those of the graph builder, with PyDirectML's names, arguments and defaults."""

# mypy: disable-error-code="empty-body"

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, TypeVar

import numpy as np

from anydml.core.dtypes import DataType
from anydml.core.errors import ArgumentTypeError
from anydml.ops import (
    ConvolutionDirection,
    ConvolutionMode,
    InterpolationMode,
    MatrixTransform,
    PaddingMode,
    RecurrentNetworkDirection,
)
from anydml.pydirectml._graph import (
    Expression,
    GraphBuilder,
    GRUOutputs,
    MaxPoolingOutputs,
    call,
    to_expression,
    wrap,
)
from anydml.pydirectml._types import (
    NO_ACTIVATION,
    FusedActivation,
    OutputOptions,
    Size2D,
    TensorDataType,
    TensorDesc,
)

__all__ = [
    "activation_identity",
    "activation_linear",
    "activation_relu",
    "activation_sigmoid",
    "activation_soft_max",
    "activation_tanh",
    "add",
    "average_pooling",
    "batch_normalization",
    "convolution",
    "divide",
    "gather",
    "gemm",
    "gru",
    "input_tensor",
    "join",
    "local_response_normalization",
    "max_pooling",
    "mean_variance_normalization",
    "multiply",
    "padding",
    "reinterpret",
    "slice",
    "subtract",
    "up_sample_2d",
    "value_scale_2d",
]

_REQUIRED: Final[Any] = object()
"""The default of arguments that have none, behind others that have one."""

_EXPRESSIONS: Final = ("Expression", "Expression | None", "Sequence[Expression]")

Function = TypeVar("Function", bound=Callable[..., Any])


def _operator(name: str, **renamed: str) -> Callable[[Function], Function]:
    """Make a function of its signature: that of the builder, which has some arguments renamed."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        @wraps(function)
        def call_operator(*values: Any, **keywords: Any) -> Any:
            try:
                bound = signature.bind(*values, **keywords)
            except TypeError as error:
                names = ", ".join(signature.parameters)
                raise ArgumentTypeError(f"{function.__name__}({names}): {error}") from None
            bound.apply_defaults()
            expressions, fields = [], {}
            for key, given in bound.arguments.items():
                value = given.tolist() if isinstance(given, np.ndarray) else given
                if value is _REQUIRED:
                    raise ArgumentTypeError(f"{function.__name__}: {key} is missing")
                kind = signature.parameters[key].annotation
                if kind in _EXPRESSIONS:
                    expressions.append(value)
                elif key == "axes" or value not in ((), []):  # others then have their default
                    fields[renamed.get(key, key)] = bool(value) if kind == "bool" else _plain(value)
            results = call(name, *expressions, **fields)
            if signature.return_annotation == "Expression":
                return results[0]
            return MaxPoolingOutputs(*results, *[wrap(None)] * (2 - len(results)))

        return call_operator  # type: ignore[return-value]  # generic

    return decorate


def _plain(value: Any) -> Any:
    """An argument as the builder takes it."""
    if isinstance(value, FusedActivation):
        return value.descriptor()
    if isinstance(value, Size2D):
        return value.width, value.height
    return value.name if isinstance(value, enum.Enum) else value


def input_tensor(scope: GraphBuilder, input_index: int, tensor_desc: TensorDesc) -> Expression:
    """An input of the graph: the one that is bound at this position."""
    return scope._input(input_index, tensor_desc)


@_operator("convolution")
def convolution(
    input: Expression,
    filter: Expression,
    bias: Expression | None = None,
    mode: ConvolutionMode = ConvolutionMode.CROSS_CORRELATION,
    direction: ConvolutionDirection = ConvolutionDirection.FORWARD,
    strides: Sequence[int] = (),
    dilations: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    output_padding: Sequence[int] = (),
    group_count: int = 1,
    fused_activation: FusedActivation = NO_ACTIVATION,
    output_sizes: Sequence[int] = (),
) -> Expression:
    """CONVOLUTION."""


@_operator("upsample_2d")
def up_sample_2d(
    input: Expression, scale_size: Size2D, interpolation_mode: InterpolationMode
) -> Expression:
    """UPSAMPLE_2D."""


@_operator("activation_relu")
def activation_relu(input: Expression) -> Expression:
    """ACTIVATION_RELU."""


@_operator("activation_sigmoid")
def activation_sigmoid(input: Expression) -> Expression:
    """ACTIVATION_SIGMOID."""


@_operator("activation_identity")
def activation_identity(input: Expression) -> Expression:
    """ACTIVATION_IDENTITY."""


@_operator("element_wise_add1")
def add(
    a: Expression, b: Expression, fused_activation: FusedActivation = NO_ACTIVATION
) -> Expression:
    """ELEMENT_WISE_ADD1."""


@_operator("element_wise_subtract")
def subtract(a: Expression, b: Expression) -> Expression:
    """ELEMENT_WISE_SUBTRACT."""


@_operator("activation_tanh")
def activation_tanh(input: Expression) -> Expression:
    """ACTIVATION_TANH."""


@_operator("element_wise_multiply")
def multiply(a: Expression, b: Expression) -> Expression:
    """ELEMENT_WISE_MULTIPLY."""


@_operator("element_wise_divide")
def divide(a: Expression, b: Expression) -> Expression:
    """ELEMENT_WISE_DIVIDE."""


@_operator("padding")
def padding(
    input: Expression,
    padding_mode: PaddingMode,
    padding_value: float,
    start_padding: Sequence[int],
    end_padding: Sequence[int],
) -> Expression:
    """PADDING."""


@_operator("mean_variance_normalization1")
def mean_variance_normalization(
    input: Expression,
    scale: Expression | None = None,
    bias: Expression | None = None,
    axes: Sequence[int] = (),
    normalize_variance: bool = _REQUIRED,
    epsilon: float = _REQUIRED,
    fused_activation: FusedActivation = NO_ACTIVATION,
) -> Expression:
    """MEAN_VARIANCE_NORMALIZATION1."""


@_operator("slice1")
def slice(  # noqa: A001  # PyDirectML's name
    input: Expression,
    input_window_offsets: Sequence[int],
    input_window_sizes: Sequence[int],
    input_window_strides: Sequence[int],
) -> Expression:
    """SLICE1."""


@_operator("value_scale_2d")
def value_scale_2d(input: Expression, scale: float, bias: Sequence[float]) -> Expression:
    """VALUE_SCALE_2D."""


@_operator("activation_linear")
def activation_linear(input: Expression, alpha: float, beta: float) -> Expression:
    """ACTIVATION_LINEAR."""


@_operator("batch_normalization")
def batch_normalization(
    input: Expression,
    mean: Expression,
    variance: Expression,
    scale: Expression,
    bias: Expression,
    spatial: bool,
    epsilon: float,
    fused_activation: FusedActivation = NO_ACTIVATION,
) -> Expression:
    """BATCH_NORMALIZATION."""


@_operator("local_response_normalization")
def local_response_normalization(
    input: Expression, cross_channel: bool, local_size: int, alpha: float, beta: float, bias: float
) -> Expression:
    """LOCAL_RESPONSE_NORMALIZATION."""


@_operator("gemm")
def gemm(
    a: Expression,
    b: Expression,
    c: Expression | None = None,
    trans_a: MatrixTransform = MatrixTransform.NONE,
    trans_b: MatrixTransform = MatrixTransform.NONE,
    alpha: float = 1.0,
    beta: float = 1.0,
    fused_activation: FusedActivation = NO_ACTIVATION,
) -> Expression:
    """GEMM."""


@_operator("average_pooling", window_sizes="window_size")
def average_pooling(
    input: Expression,
    strides: Sequence[int],
    window_sizes: Sequence[int],
    start_padding: Sequence[int],
    end_padding: Sequence[int],
    include_padding: bool,
) -> Expression:
    """AVERAGE_POOLING."""


@_operator("max_pooling2", window_sizes="window_size")
def max_pooling(
    input: Expression,
    window_sizes: Sequence[int],
    strides: Sequence[int] = (),
    start_padding: Sequence[int] = (),
    end_padding: Sequence[int] = (),
    dilations: Sequence[int] = (),
    output_indices: bool = False,
) -> MaxPoolingOutputs:
    """MAX_POOLING2."""


def reinterpret(
    input: Expression,
    new_type: TensorDataType,
    new_size: Sequence[int],
    new_strides: Sequence[int] | None,
) -> Expression:
    """The bytes of a tensor as those of another one."""
    old = to_expression("input", input)
    return wrap(old.builder.reinterpret(old, DataType(int(new_type)), new_size, new_strides))


@_operator("activation_softmax")
def activation_soft_max(input: Expression) -> Expression:
    """ACTIVATION_SOFTMAX."""


@_operator("join")
def join(input: Sequence[Expression], axis: int) -> Expression:
    """JOIN."""


def gru(
    input: Expression,
    weight: Expression,
    recurrence: Expression,
    bias: Expression | None = None,
    hidden_init: Expression | None = None,
    sequence_lengths: Expression | None = None,
    activation_descs: Sequence[FusedActivation] = _REQUIRED,
    direction: RecurrentNetworkDirection = _REQUIRED,
    linear_before_reset: bool = True,
    output_options: OutputOptions = _REQUIRED,
) -> GRUOutputs:
    """GRU."""
    if _REQUIRED in (activation_descs, direction, output_options):
        raise ArgumentTypeError(
            "gru: expected activation_descs, direction and output_options, got fewer"
        )
    tensors = (input, weight, recurrence, bias, hidden_init, sequence_lengths)
    outputs = iter(
        call(
            "gru",
            *tensors,
            activation_descs=[activation.descriptor() for activation in activation_descs],
            direction=direction.name,
            linear_before_reset=bool(linear_before_reset),
            output_sequence=output_options is not OutputOptions.Single,
            output_single=output_options is not OutputOptions.Sequence,
        )
    )
    absent = wrap(None)
    sequence = absent if output_options is OutputOptions.Single else next(outputs)
    return GRUOutputs(
        sequence, absent if output_options is OutputOptions.Sequence else next(outputs)
    )


@_operator("gather")
def gather(input: Expression, indices: Expression, axis: int, index_dimensions: int) -> Expression:
    """GATHER."""
