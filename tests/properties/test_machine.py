"""Devices, operators, bindings and threads in any order: each result is the reference's."""

import copy
import dataclasses
import gc
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from random import Random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import anydml as dml
from anydml.ops._computed import Computed
from anydml.ops._fields import Role
from anydml.ops._registry import OPERATORS
from anydml.suite.choices import Seeded
from anydml.suite.descriptors import descriptor
from support import Flavour, Layout, Poisoned, by_reference, contents, indices, strategies

pytestmark = pytest.mark.slow

KINDS = [kind for kind in dict.fromkeys(OPERATORS.values()) if not issubclass(kind, Computed)]
SEEDS = st.integers(0, 2**32 - 1)
INDICES = "IndicesTensor"


class Made:
    """A compiled operator and what must come out of it."""

    def __init__(self, desc):
        self.desc = desc
        self.operator = dml.Device("cpu").create_operator(desc)
        self.compiled = self.operator.compile()
        self.expected = lambda arrays: by_reference(desc, arrays)
        use = self.compiled.program.calls[0].indices
        self.limits = use.sizes if use else None
        self.owned = {}  # name -> values


class Binding:
    """Operands of a dispatch, with the values that are expected in its outputs."""

    def __init__(self, compiled, seed):
        self.operator = compiled
        chance, noise = Random(seed), np.random.default_rng(seed)
        self.inputs = {}
        for name, tensors, _ in fields(compiled.desc, Role.INPUT):
            if name not in compiled.owned:
                self.inputs[name] = [Operand(chance, tensor) for tensor in tensors]
        self.outputs = {
            name: [Operand(chance, tensor) for tensor in tensors]
            for name, tensors, _ in fields(compiled.desc, Role.OUTPUT)
        }
        self.many = {info.name: info.many for info in compiled.desc.tensor_fields()}
        self.fill(chance, noise)

    def fill(self, chance, noise):
        for name, tensors, _ in fields(self.operator.desc, Role.INPUT):
            for tensor, operand in zip(tensors, self.inputs.get(name, ()), strict=False):
                operand.put(values_of(self.operator, chance, noise, name, tensor))

    def bound(self, operands):
        return {
            name: [one.bound for one in many] if self.many[name] else many[0].bound
            for name, many in operands.items()
        }

    def arrays(self):
        arguments = {name: [one.view for one in many] for name, many in self.inputs.items()}
        arguments |= {name: list(many) for name, many in self.operator.owned.items()}
        return {name: list(v) if self.many[name] else v[0] for name, v in arguments.items()}

    def dispatch(self):
        self.operator.compiled.dispatch(**self.bound(self.inputs), **self.bound(self.outputs))

    def untouched(self):
        return all(one.untouched() for many in self.outputs.values() for one in many)

    def bad(self):
        limits = self.operator.limits
        return None if limits is None else first_bad(self.arrays()[INDICES], limits)

    def check(self):
        """Dispatch; an error where an index is bad, else the reference's results."""
        bad = self.bad()
        if bad is not None:
            with pytest.raises(dml.IndexOutOfRangeError) as caught:
                self.dispatch()
            assert caught.value.position == bad
            assert self.untouched()
            return
        self.dispatch()
        self.results_are_right()

    def results_are_right(self):
        expected = self.operator.expected(self.arrays())
        for name, many in self.outputs.items():
            expected_result = (
                expected[name] if isinstance(expected[name], list) else [expected[name]]
            )
            for one, reference in zip(many, expected_result, strict=True):
                same(name, one.view, reference, expected)
                assert one.gaps_intact()
        assert all(one.untouched() for many in self.inputs.values() for one in many)


def same(name, got, reference, expected):
    got, reference = as_bits(got), as_bits(np.asarray(reference))
    if name == "OutputCoordinatesTensor":  # rows beyond the count are not defined
        count = np.asarray(expected["OutputCountTensor"]).flat[0]
        columns = got.shape[-1]
        got, reference = got.reshape(-1, columns)[:count], reference.reshape(-1, columns)[:count]
    assert np.array_equal(got, reference), name


def values_of(compiled, chance, noise, name, tensor):
    kind = tensor.data_type.numpy
    if name != INDICES or compiled.limits is None:
        return contents(noise, tensor.sizes, kind, chance.choice(list(Flavour)))
    sizes = compiled.limits if len(compiled.limits) > 1 else compiled.limits[0]
    found = indices(noise, tensor.sizes, sizes, kind)
    if chance.random() < 0.05:
        found.flat[chance.randrange(found.size)] = np.iinfo(kind).max
    return found


def first_bad(lookup, limits):
    wide, sizes = lookup.astype(object), np.array(limits, object)
    wrong = np.argwhere((wide >= sizes) | (wide < (-sizes if lookup.dtype.kind == "i" else 0)))
    return tuple(map(int, wrong[0])) if len(wrong) else None


def fields(desc, role):
    for info in desc.bind_points(role):
        value = getattr(desc, info.attribute)
        yield info.name, (value if info.many else (value,)), info.many


def as_bits(x):
    return x.view(f"u{x.dtype.itemsize}")


class Operand:
    """What is bound for a tensor, its elements, and the memory that they lie in."""

    def __init__(self, chance, tensor):
        kind, sizes = tensor.data_type.numpy, tensor.sizes
        raw = tensor.total_tensor_size_in_bytes + chance.choice((0, 0, 5))
        # An array of the tensor's own type and sizes is no raw buffer.
        if chance.random() < 0.3 and (kind != np.uint8 or sizes != (raw,)):
            self.memory = Poisoned((raw,), "u1").array
            strides = [stride * kind.itemsize for stride in tensor.element_strides]
            self.view, self.bound = np.ndarray(sizes, kind, self.memory, 0, strides), self.memory
        else:
            order = list(range(len(sizes)))
            chance.shuffle(order)
            layout = Layout(tuple(order), tuple(chance.choice((0, 0, 1)) for _ in sizes))
            operand = Poisoned(sizes, kind, layout)
            self.memory, self.view, self.bound = operand.block, operand.array, operand.array
        self.before = self.memory.copy()

    def put(self, values):
        as_bits(self.view)[...] = as_bits(values.reshape(self.view.shape))
        self.before = self.memory.copy()

    def untouched(self):
        return np.array_equal(self.memory, self.before)

    def gaps_intact(self):
        """Whether only elements have changed; puts the old ones back."""
        first = self.view.__array_interface__["data"][0]
        first -= self.memory.__array_interface__["data"][0]
        kind = as_bits(self.view).dtype
        old = np.ndarray(self.view.shape, kind, self.before, first, self.view.strides)
        as_bits(self.view)[...] = old
        return self.untouched()


class Machine(RuleBasedStateMachine):
    """Whatever was done before, a dispatch gives what the reference gives."""

    def __init__(self):
        super().__init__()
        self.operators = []
        self.bindings = []
        self.kept = []  # results of calls, with copies: memory that is handed out stays as it is
        self.usual = dml.get_num_threads(), dml.memory_pool().limit
        self.pool = ThreadPoolExecutor(4)

    def teardown(self):
        self.pool.shutdown()
        self.results_stay()
        dml.set_num_threads(self.usual[0])
        dml.set_memory_pool_limit(self.usual[1])

    def results_stay(self):
        for result, before in self.kept:
            assert np.array_equal(as_bits(result), before)

    def choose(self, data, items):
        return items[data.draw(st.integers(0, len(items) - 1))]

    # ---- operators ------------------------------------------------------------------------------

    @initialize(seed=SEEDS)
    def first(self, seed):
        self.create_any_size(seed)

    @rule(data=st.data(), kind=st.sampled_from(KINDS), own=st.booleans())
    def create(self, data, kind, own):
        desc = data.draw(strategies.descriptors(kind))
        if own:
            for info in kind.tensor_fields(Role.INPUT):
                if not info.many and data.draw(st.integers(0, 2)) > 0:
                    owned = dataclasses.replace(getattr(desc, info.attribute), flags="OWNED_BY_DML")
                    desc = dataclasses.replace(desc, **{info.attribute: owned})
        seed = data.draw(SEEDS)
        self.operators.append(self.initialised(Made(desc), seed))
        Binding(self.operators[-1], seed).check()

    @rule(seed=SEEDS)
    def create_any_size(self, seed):
        kind = KINDS[seed % len(KINDS)]
        maximum = 30 if kind.NAME.startswith("UPSAMPLE") else 3000  # whose reference is slow
        desc = descriptor(Seeded(seed), kind, maximum=maximum)
        self.operators.append(Made(desc))

    def initialised(self, compiled, seed):
        chance, noise = Random(seed), np.random.default_rng(seed)
        arguments, values = {}, {}
        for info in compiled.desc.tensor_fields(Role.INPUT):
            tensor = getattr(compiled.desc, info.attribute)
            if info.many or tensor.flags is not dml.TensorFlags.OWNED_BY_DML:
                continue
            arguments[info.name] = Operand(chance, tensor)
            arguments[info.name].put(values_of(compiled, chance, noise, info.name, tensor))
            values[info.name] = [arguments[info.name].view.copy()]
        if arguments:
            with pytest.raises(dml.BindingError):
                compiled.compiled.dispatch()
            bound = {name: one.bound for name, one in arguments.items()}
            compiled.compiled = compiled.compiled.initialize(**bound)
            for one in arguments.values():
                one.memory[...] = 0x5A  # what it owns is a copy
            compiled.owned = values
        return compiled

    @rule(data=st.data())
    def copy_operator(self, data):
        """A descriptor that went through pickle, JSON or copy makes the same operator."""
        compiled = self.choose(data, self.operators)
        if compiled.owned:
            return
        ways = [
            lambda desc: pickle.loads(pickle.dumps(desc)),
            copy.deepcopy,
            lambda desc: dml.from_json(desc.to_json()),
        ]
        desc = self.choose(data, ways)(compiled.desc)
        assert desc == compiled.desc
        self.operators.append(Made(desc))

    @precondition(lambda self: len(self.operators) > 1)
    @rule(data=st.data())
    def forget_operator(self, data):
        gone = self.choose(data, self.operators)
        self.operators.remove(gone)
        self.bindings = [binding for binding in self.bindings if binding.operator is not gone]
        del gone
        gc.collect()

    # ---- dispatches -----------------------------------------------------------------------------

    @rule(data=st.data(), seed=SEEDS)
    def bind(self, data, seed):
        binding = Binding(self.choose(data, self.operators), seed)
        binding.check()
        self.bindings = [*self.bindings[-5:], binding]

    @precondition(lambda self: self.bindings)
    @rule(data=st.data(), seed=SEEDS)
    def dispatch_other_values(self, data, seed):
        binding = self.choose(data, self.bindings)
        binding.fill(Random(seed), np.random.default_rng(seed))
        binding.check()

    @rule(data=st.data(), seed=SEEDS)
    def call(self, data, seed):
        binding = Binding(self.choose(data, self.operators), seed)
        if binding.bad() is not None:
            with pytest.raises(dml.IndexOutOfRangeError):
                binding.operator.compiled(**binding.bound(binding.inputs))
            return
        results = binding.operator.compiled(**binding.bound(binding.inputs))
        expected = binding.operator.expected(binding.arrays())
        results = results if len(expected) > 1 else [results]
        for (name, expected_result), result in zip(expected.items(), results, strict=True):
            choices = (
                zip(expected_result, result, strict=True)
                if binding.many[name]
                else [(expected_result, result)]
            )
            for reference, got in choices:
                same(name, got, reference, expected)
                self.kept.append((got, as_bits(got).copy()))
        self.kept = self.kept[-20:]
        self.results_stay()

    @rule(data=st.data(), seed=SEEDS, shared=st.booleans(), drop=st.booleans())
    def dispatch_at_once(self, data, seed, shared, drop):
        """From several threads: one operator or several, while operands are collected."""
        first = self.choose(data, self.operators)
        compiled_ones = [first if shared else self.choose(data, self.operators) for _ in range(4)]
        bindings = [Binding(compiled, seed + i) for i, compiled in enumerate(compiled_ones)]
        start = threading.Barrier(len(bindings) + 1)

        def work(binding, count):
            start.wait(60)
            with dml.num_threads(count):
                binding.check()

        running = [self.pool.submit(work, binding, 1 + i % 3) for i, binding in enumerate(bindings)]
        start.wait(60)
        if drop:
            del bindings
            gc.collect()
            dml.set_num_threads(1 + seed % 4)
        for done in running:
            done.result(120)

    # ---- what goes wrong ------------------------------------------------------------------------

    @rule(data=st.data(), seed=SEEDS)
    def bad_binding(self, data, seed):
        binding = Binding(self.choose(data, self.operators), seed)
        if binding.bad() is not None:
            return
        arguments = binding.bound(binding.inputs) | binding.bound(binding.outputs)
        name = self.choose(data, list(arguments))
        way = data.draw(st.integers(0, 4))
        if way == 0:
            del arguments[name]
        elif way == 1:
            arguments["Other"] = arguments[name]
        else:
            arguments[name] = [None, np.zeros((3, 0, 3), "f4"), object()][way - 2]
        with pytest.raises(dml.BindingError):
            binding.operator.compiled.dispatch(**arguments)
        assert binding.untouched()
        binding.check()

    # ---- settings -------------------------------------------------------------------------------

    @rule(count=st.integers(1, 6))
    def set_threads(self, count):
        dml.set_num_threads(count)

    @rule(limit=st.sampled_from([0, 1 << 20, 1 << 28]))
    def set_pool(self, limit):
        dml.set_memory_pool_limit(limit)


class TestMachine(Machine.TestCase):
    settings = settings(max_examples=4, stateful_step_count=20)


@pytest.mark.heavy
class TestMachineForLong(Machine.TestCase):
    settings = settings(max_examples=1500, stateful_step_count=50, derandomize=False)
