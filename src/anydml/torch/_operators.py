"""The array functions as operators of PyTorch's dispatcher: ``torch.ops.anydml``.

Each function is two operators of one schema. ``torch.ops.anydml.top_k_plain`` has kernels, shapes
and a rule for `torch.vmap`; ``torch.ops.anydml.top_k`` has derivatives as well. A call of a
function takes the plain one, which the dispatcher reaches in half the time, where no operand asks
for a derivative. `torch.compile` and `torch.export` always see the other. A third,
``torch.ops.anydml.top_k_out``, writes to ``out=``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from anydml._native import native
from anydml.core.errors import AllocationError, ArgumentError, ArgumentTypeError
from anydml.core.program import Dynamic
from anydml.functions._function import SPECS, Attributes, Call, FunctionSpec
from anydml.functions._memory import call_on_memory, on_memory
from anydml.libraries._torch import bump_version, check_kind, check_rank
from anydml.torch._memory import block_of, is_plain, place_of
from anydml.torch._namespace import Namespace, is_compiling
from anydml.torch._pytorch import Tensor, torch

NAMESPACE: Final = "anydml"

_KINDS: Final = {
    "size": "SymInt", "sizes": "SymInt[]", "integer": "int", "integers": "int[]", "flag": "bool",
    "word": "str", "type": "ScalarType", "number": "Scalar",
}  # fmt: skip

# PyTorch has no class for an allocation that fails on the CPU.
_OF_ALLOCATION: Final = re.compile(
    "can't allocate memory|not enough memory|[Ss]torage size calculation overflowed"
    "|Overflow when unpacking long"
)

# Of a number that no operator of PyTorch takes, as NumPy's or one of more than 64 bits.
_OF_SCHEMA: Final = "Expected a value of type"

_INDEX_TYPES: Final = (torch.int64, torch.int32, torch.uint32, torch.uint64)

library: Final[Any] = torch.library.Library(NAMESPACE, "DEF")

is_tracing: Final[Any] = torch.jit.is_tracing
is_grad_enabled: Final[Any] = torch.is_grad_enabled
unpack_dual: Final[Any] = torch.autograd.forward_ad.unpack_dual


class Operator:
    """The operators of one function."""

    def __init__(self, spec: FunctionSpec) -> None:
        self.spec = spec
        self._count = 1 if spec.lists_operands else len(spec.operands)
        self._sizes = {a.name for a in spec.attributes if a.kind == "sizes"}
        self._defaults = tuple(a.default for a in spec.attributes if a.default is not None)
        self._derives = spec.derivatives.of if spec.derivatives else ()
        self._native: Callable[..., Any] = native.memory_call(spec.operator.KERNEL)
        self._kernels = {"CPU": self._host_kernel(), "CUDA": self._cuda_kernel}
        self._outs = 1 if spec.lists_results else len(spec.results)
        self._is_traceable = bool(self._defaults)
        for name, kind in ((spec.name, "differentiable"), (f"{spec.name}_plain", "plain")):
            # Results are packed, whatever strides the inputs have, and kernels take any.
            tags = (torch.Tag.pt2_compliant_tag, torch.Tag.flexible_layout)
            library.define(f"{name}{self._schema()}", tags=tags)
            for key, kernel in self._kernels.items():
                library.impl(name, self._replaceable(key) if self._defaults else kernel, key)
            qualified = f"{NAMESPACE}::{name}"
            torch.library.register_fake(qualified, self._fake, lib=library)
            torch.library.register_vmap(qualified, self._batch_by(kind), lib=library)
        # No derivative is asked of it, so it need not stop at autograd's fallback, nor need `out`.
        library.impl(f"{spec.name}_plain", torch.library.fallthrough_kernel, "Autograd")
        operators = getattr(torch.ops, NAMESPACE)
        # Overloads of one name would be less to see, but PyTorch aborts when it drops them at exit.
        self.plain: Any = getattr(operators, f"{spec.name}_plain").default
        self.differentiable: Any = getattr(operators, spec.name).default
        if spec.derivatives is not None:
            library.impl(spec.name, self._autograd, "Autograd")
        name = f"{spec.name}_out"
        library.define(f"{name}{self._schema(writes=True)}")
        library.impl(name, self._host_kernel_to_out(), "CPU")
        library.impl(name, self._to_out, "CUDA")
        library.impl(name, torch.library.fallthrough_kernel, "Autograd")
        torch.library.register_fake(f"{NAMESPACE}::{name}", _of_no_result, lib=library)
        self.out: Any = getattr(operators, name).default
        names = list(inspect.signature(spec.prepare).parameters)[1:]
        self._typed_by = {i: names.index(s) for i, s in enumerate(spec.results) if s in names[1:]}

    def _schema(self, writes: bool = False) -> str:
        spec = self.spec
        operands = "Tensor[] " if spec.lists_operands else "Tensor "
        parameters = [operands + name for name in spec.operands]
        for attribute in spec.attributes:
            default = "" if writes or attribute.default is None else f"={attribute.default}"
            parameters.append(f"{_KINDS[attribute.kind]} {attribute.name}{default}")
        count = len(spec.results)
        if writes:
            outs = [f"Tensor({mark}!) out{i}" for i, mark in enumerate("ab"[:count])]
            parameters += ["Tensor(a!)[] out"] if spec.lists_results else outs
            return f"({', '.join(parameters)}) -> ()"
        results = "Tensor[]" if spec.lists_results else f"({', '.join(['Tensor'] * count)})"
        return f"({', '.join(parameters)}) -> {results}"

    def _packed(self, values: Sequence[Any]) -> Any:
        """A value for each result, in the form that the schema has."""
        if self.spec.lists_results:
            return list(values)
        return tuple(values) if len(values) > 1 else values[0]

    # ---- kernels

    def _split_arguments(
        self, arguments: tuple[Any, ...]
    ) -> tuple[Sequence[Tensor], tuple[Any, ...]]:
        operands = arguments[0] if self.spec.lists_operands else arguments[: self._count]
        return operands, arguments[self._count :]

    def _parts(self, arguments: tuple[Any, ...]) -> tuple[Sequence[Tensor], dict[str, Any]]:
        operands, values = self._split_arguments(arguments)
        missing = len(self.spec.attributes) - len(values)
        if missing:  # the dispatcher leaves out defaults
            values += self._defaults[-missing:]
        return operands, self.spec.named(values)

    def _host_kernel(self) -> Callable[..., Any]:
        count = self._count + len(self.spec.attributes) - len(self._defaults)
        run, defaults, lists_results = self._native, self._defaults, self.spec.lists_results

        def kernel(*arguments: Any) -> Any:
            others = arguments[count:]  # attributes of the function, which the kernel does not have
            if not others or others == defaults[: len(others)]:
                result = run(None, None, None, *arguments[:count])
                if result is not None:
                    return list(result) if lists_results else result
            return self._general(*self._parts(arguments))

        return kernel

    def _host_kernel_to_out(self) -> Callable[..., None]:
        count = self._count + len(self.spec.attributes) - len(self._defaults)
        run, defaults, outs, general = self._native, self._defaults, self._outs, self._to_out

        def kernel(*arguments: Any) -> None:
            if arguments[count:-outs] == defaults:
                out = arguments[-1] if outs == 1 else arguments[-outs:]
                if run(out, None, None, *arguments[:count]) is not None:
                    return
            general(*arguments)

        return kernel

    def _replaceable(self, key: str) -> Callable[..., Any]:
        def kernel(*arguments: Any) -> Any:
            return self._kernels[key](*arguments)

        return kernel

    def _cuda_kernel(self, *arguments: Any) -> Any:
        operands, values = self._split_arguments(arguments)
        result = self._call_native(operands, values)
        if result is None:
            return self._general(*self._parts(arguments))
        return list(result) if self.spec.lists_results else result

    def _call_native(
        self, operands: Sequence[Tensor], values: Sequence[Any], out: Any = None
    ) -> Any:
        """Make the native call, which writes to `out` if it is there; None if it declines."""
        count = len(self.spec.attributes) - len(self._defaults)
        others = values[count:]  # attributes of the function, which the kernel does not have
        if not operands or others != self._defaults[: len(others)]:
            return None
        outs = [] if out is None else [out] if isinstance(out, torch.Tensor) else out
        device = operands[0].device
        if any(x.device != device for x in (*operands, *outs)):
            return None  # the general path refuses several devices
        place, make, inputs = None, None, list[Any](operands)
        if operands[0].is_cuda:
            place, make = place_of(operands[0])
            inputs = [block_of(x) for x in operands]
            if outs:
                out = block_of(out) if out is outs[0] else [block_of(x) for x in outs]
        if self.spec.lists_operands:
            inputs = [inputs]
        return self._native(out, place, make, *inputs, *values[:count])

    def _general(self, operands: Sequence[Tensor], attributes: Attributes) -> Any:
        """Run a call that the native call declines: unusual, or wrong."""
        spec = self.spec
        operands = [x.detach() for x in operands]
        for i, x in enumerate(operands):
            check_rank(x, spec.operand_name(i))
        outputs = spec.outputs_of(operands, attributes)
        if any(isinstance(size, Dynamic) for shape, _ in outputs for size in shape):
            return call_on_memory(spec, operands, attributes).clone()
        # A GPU reports a bad index later, and has then written nothing.
        allocate = operands[0].new_zeros if operands[0].is_cuda else operands[0].new_empty
        results = [allocate(shape, dtype=kind) for shape, kind in outputs]
        found = self._packed(results)
        call_on_memory(spec, operands, attributes, found)
        return found

    def _to_out(self, *arguments: Any) -> None:
        results = arguments[-1] if self.spec.lists_results else arguments[-self._outs :]
        arguments = arguments[: -self._outs]
        operands, values = self._split_arguments(arguments)
        if self._call_native(operands, values, self._packed(results)) is None:
            operands, attributes = self._parts(arguments)
            operands, results = ([x.detach() for x in each] for each in (operands, results))
            call_on_memory(self.spec, operands, attributes, self._packed(results))

    def _fake(self, *arguments: Any) -> Any:
        spec = self.spec
        if self._is_traceable:
            self._stop_tracing()
        operands, attributes = self._parts(arguments)
        try:
            outputs = spec.outputs_of(operands, attributes)
        except RuntimeError:  # sizes that data decide: the graph checks them
            for bound in spec.bounds(operands, attributes):
                torch._check(bound)
            outputs = spec.outputs_of(operands, attributes)
        results = []
        for shape, kind in outputs:
            sizes = [
                torch.library.get_ctx().new_dynamic_size() if isinstance(size, Dynamic) else size
                for size in shape
            ]
            results.append(operands[0].new_empty(sizes, dtype=kind))
        return self._packed(results)

    def _stop_tracing(self) -> None:
        """Keep PyTorch from tracing the kernels, which run where a graph breaks at a size of data.

        Called when a graph is first traced: `torch.compiler.disable` imports 800 modules.
        """
        self._is_traceable = False
        for key, kernel in self._kernels.items():
            self._kernels[key] = torch.compiler.disable(kernel, recursive=False)

    # ---- batches

    def _batch_by(self, kind: str) -> Callable[..., Any]:
        def call(spec: FunctionSpec, operands: Sequence[Tensor], attributes: Any) -> Any:
            chosen = OPERATORS[spec]
            return as_sequence(chosen.call_operator(getattr(chosen, kind), operands, attributes))

        lib = Namespace(call)

        def batch(info: Any, dims: Any, *arguments: Any) -> Any:
            operands, attributes = self._parts(arguments)
            dims = dims[0] if self.spec.lists_operands else dims[: self._count]
            results, axes = self.spec.batch(lib, operands, dims, info.batch_size, attributes)
            return self._packed(results), self._packed(axes)

        return batch

    # ---- calls

    def call_operator(
        self,
        operator: Any,
        operands: Sequence[Tensor],
        attributes: Attributes,
        *outs: Any,
    ) -> Any:
        """Call one of the function's operators."""
        if self.spec.lists_operands:
            return operator(list(operands), *attributes.values(), *outs)
        return operator(*operands, *attributes.values(), *outs)

    def write(self, arguments: tuple[Any, ...], out: Any) -> Any:
        """Call the function with results that the caller gives."""
        spec = self.spec
        outs = [out] if spec.is_single or not isinstance(out, list | tuple) else list(out)
        present = [x for x in outs if x is not None]
        fits = spec.lists_results or len(outs) == len(spec.results)
        if is_compiling():
            self._copy_to(outs, self._prepare(outs, arguments))
        elif fits and is_plain(*present):
            operands, attributes, is_scalar = self._prepare(outs, arguments)
            tensors = [*operands, *present]
            several = len({x.device for x in tensors}) > 1
            if (
                is_scalar
                or several
                or any(map(_asks_derivative, tensors))
                or not is_plain(*operands)
            ):
                return on_memory(spec, arguments, out)  # which says what does not fit
            self._write_to(outs, operands, attributes)
            bump_version(present)
        else:  # what requires a gradient, has no memory or does not fit is rejected there
            return on_memory(spec, arguments, out)
        return out if spec.is_single else spec.finished(outs)

    def _prepare(self, outs: Sequence[Any], arguments: tuple[Any, ...]) -> Call:
        """Normalize a call; indices have the type of those in ``out=``."""
        for i, position in self._typed_by.items():
            if arguments[position] is None and i < len(outs):
                kind = getattr(outs[i], "dtype", None)
                if kind in _INDEX_TYPES:
                    arguments = (*arguments[:position], kind, *arguments[position + 1 :])
        return self.spec.prepare(namespace, *arguments)

    def _copy_to(self, outs: list[Any], call: Call) -> None:
        """Write to ``out=`` in a graph, where PyTorch may fuse the copy; fill in what is None."""
        operands, attributes, is_scalar = call
        for x in (*operands, *(x for x in outs if x is not None)):
            if x.requires_grad and is_grad_enabled():
                raise ArgumentTypeError(
                    "out: expected operands and results without a gradient, got one that requires "
                    "grad; use .detach(), or call without out= to keep the gradient"
                )
        many = as_sequence(self.run(operands, attributes), is_scalar)
        if len(many) != len(outs):
            raise ArgumentError(f"out: expected {len(many)} tensors, got {len(outs)}")
        for i, result in enumerate(many):
            x = outs[i]
            if x is None:
                outs[i] = result
                continue
            if x.dtype != result.dtype:
                raise ArgumentTypeError(f"out: expected {result.dtype}, got {x.dtype}")
            if x.shape != result.shape:
                raise ArgumentError("out: expected a tensor of the result's shape, got another")
            x.copy_(result)

    def _write_to(
        self, outs: list[Any], operands: Sequence[Tensor], attributes: Attributes
    ) -> None:
        """Call the operator that writes; fill in what is None."""
        if any(x is None for x in outs):
            for i, (shape, kind) in enumerate(self.spec.outputs_of(operands, attributes)):
                if outs[i] is None:
                    outs[i] = operands[0].new_empty(shape, dtype=kind)
        if self.spec.lists_results and is_tracing():  # torch.jit has no lists that are written
            for x, result in zip(outs, self.run(operands, attributes), strict=True):
                x.copy_(result)
            return
        results = [outs] if self.spec.lists_results else outs
        self.call_operator(self.out, operands, attributes, *results)

    def asks(self, operands: Sequence[Tensor]) -> bool:
        """Whether a derivative may be asked of a call; true of what a transformation wraps."""
        if not native.have_storage(operands):
            return True
        for i in range(len(operands)) if self.spec.lists_operands else self._derives:
            if _asks_derivative(operands[i]):
                return True
        return False

    def run(self, operands: Sequence[Tensor], attributes: Attributes) -> Any:
        """Call the function on normalized operands."""
        spec = self.spec
        if is_compiling():
            return self.call_operator(self.differentiable, operands, attributes)
        if self._sizes and is_tracing():  # sizes are tensors then, which no list of sizes may hold
            attributes = {
                name: [int(size) for size in value] if name in self._sizes else value
                for name, value in attributes.items()
            }
        if spec.derivatives is not None and self.asks(operands):
            has_list = spec.lists_operands or spec.lists_results
            if has_list and any(map(_is_batch_of_gradients, operands)):
                return spec.blocks.rule(namespace, operands, attributes)
            return self._derived(operands, attributes)
        return self.call_operator(self.plain, operands, attributes)

    def call(self) -> Callable[[tuple[Any, ...], Any], Any]:
        """Return the call of the function on a user's arguments."""
        spec, prepare, is_single = self.spec, self.spec.prepare, self.spec.is_single
        run, plain, asks = self.run, self.plain, self.asks
        derives = spec.derivatives is not None
        unusual = spec.lists_operands or bool(self._sizes)

        def call(arguments: tuple[Any, ...], out: Any) -> Any:
            try:
                if out is not None:
                    return self.write(arguments, out)
                operands, attributes, is_scalar = prepare(namespace, *arguments)
                if unusual or is_compiling() or (derives and asks(operands)):
                    results = run(operands, attributes)
                else:
                    results = plain(*operands, *attributes.values())
            except (RuntimeError, TypeError, OverflowError) as error:
                if is_compiling():
                    raise
                if isinstance(error, OverflowError) or _OF_SCHEMA in str(error):
                    return on_memory(spec, arguments, out)  # which knows the value, or refuses it
                self._explain(arguments, error)
                raise
            if is_scalar:
                results = as_sequence(results, is_scalar)
            elif is_single:
                return results
            return spec.finished(results)

        return call

    def _explain(self, arguments: tuple[Any, ...], error: Exception) -> None:
        """Raise this library's error for one of PyTorch's, if there is one."""
        for i, x in enumerate(self._split_arguments(arguments)[0]):
            if isinstance(x, torch.Tensor) and (
                isinstance(error, NotImplementedError) or x.is_nested
            ):
                check_kind(x, self.spec.operand_name(i))
        if isinstance(error, torch.OutOfMemoryError) or _OF_ALLOCATION.search(str(error)):
            raise AllocationError(self.spec.name, None, "a tensor") from error

    def _autograd(self, *arguments: Any) -> Any:
        """The dispatcher's kernel for derivatives."""
        operands, attributes = self._parts(arguments)
        if self.asks(operands):
            return self._derived(operands, attributes)
        return self.call_operator(self.plain, operands, attributes)

    def _derived(self, operands: Sequence[Tensor], attributes: Attributes) -> Any:
        results = Derived.apply(OperatorCall(self, attributes), *operands)
        return list(results) if self.spec.lists_results else results


def _asks_derivative(x: Tensor) -> bool:
    if x.requires_grad and is_grad_enabled():
        return True
    if not (x.is_floating_point() or x.is_complex()):
        return False
    try:
        return unpack_dual(x).tangent is not None
    except RuntimeError:  # below autograd, in a dispatch mode
        return False


def as_sequence(results: Any, is_scalar: bool = False) -> Sequence[Tensor]:
    """All results of an operator, without axes where the call is of a scalar."""
    many = (results,) if isinstance(results, torch.Tensor) else results
    return [y.reshape(()) for y in many] if is_scalar else many


def _of_no_result(*arguments: Any, **outs: Any) -> None:
    """The shapes of an operator that writes."""


def _is_batch_of_gradients(x: Tensor) -> bool:
    """Whether ``is_grads_batched`` passes it around, which cannot batch lists of tensors."""
    wrapped = x.layout is torch.strided and not native.have_storage((x,))
    return wrapped and torch.func.debug_unwrap(x) is x


@dataclass
class OperatorCall:
    """An operator with its attributes: what PyTorch passes on as one argument."""

    operator: Operator
    attributes: Attributes


class Derived(torch.autograd.Function):  # type: ignore[misc]  # PyTorch's, without types
    """A call with derivatives, by the rules of its specification."""

    generate_vmap_rule = True

    @staticmethod
    def forward(call: OperatorCall, *operands: Tensor) -> Any:
        results = call.operator.call_operator(call.operator.plain, operands, call.attributes)
        return tuple(results) if isinstance(results, list) else results

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        call, *operands = inputs
        results = as_sequence(output)
        saved = call.operator.spec.saved(operands, results, call.attributes)
        constant = [y for y in results if not (y.is_floating_point() or y.is_complex())]
        ctx.mark_non_differentiable(*constant)
        values = saved.values()
        ctx.save_for_backward(*values)
        ctx.save_for_forward(*values)
        ctx.call = call
        ctx.saved = saved.with_values([True] * len(values))  # PyTorch keeps the arrays

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved.with_values(ctx.saved_tensors)
        needs = ctx.needs_input_grad[1:]
        derivatives = ctx.call.operator.spec.derivatives
        return None, *derivatives.gradient(namespace, saved, grads, needs)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        saved = ctx.saved.with_values(ctx.saved_tensors)
        spec = ctx.call.operator.spec
        moved = spec.derivatives.tangent(namespace, saved, tangents)
        return tuple(moved) if spec.lists_results or len(moved) > 1 else moved[0]


def _call(spec: FunctionSpec, operands: Sequence[Tensor], attributes: Attributes) -> Any:
    return as_sequence(OPERATORS[spec].run(operands, attributes))


namespace: Final = Namespace(_call)

OPERATORS: Final = {spec: Operator(spec) for spec in SPECS.values()}
"""The operators of each array function."""


def call_of(spec: FunctionSpec) -> Callable[[tuple[Any, ...], Any], Any]:
    """Return the call of an array function on tensors."""
    return OPERATORS[spec].call()
