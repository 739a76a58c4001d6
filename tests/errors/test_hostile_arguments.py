"""Every argument of everything public, hostile in every way that could be thought of.

The outcome is a result, an exception of this package, or what the operand's own method raised;
never another exception, and never the end of the process.
"""

import itertools
import threading

import numpy as np
import pytest
from hostile_values import CALLS, COMPILED, HOSTILE, OwnError, X

import anydml as dml

PAIRS = [(name, argument) for name, (_, make) in CALLS.items() for argument in make()]


@pytest.fixture(scope="module", autouse=True)
def as_before():
    threads, limit = dml.get_num_threads(), dml.memory_pool().limit
    yield
    dml.set_num_threads(threads)
    dml.set_memory_pool_limit(limit)


def outcome(call, arguments):
    try:
        return call(**arguments)
    except (dml.AnyDMLError, OwnError) as error:
        str(error)
        return None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("step", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "argument"), PAIRS, ids=lambda value: value)
def test_one_hostile_argument(name, argument, step):
    call, make = CALLS[name]
    first = PAIRS.index((name, argument)) % step  # each argument has other values
    for title, value in list(HOSTILE.items())[first::step]:
        try:
            outcome(call, {**make(), argument: value()})
        except Exception as error:
            error.add_note(f"{name}({argument} = {title})")
            raise


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name, (_, make) in CALLS.items() if "out" in make()])
def test_two_hostile_arguments(name):
    """Every pair of arguments, with a sample of all pairs of values."""
    call, make = CALLS[name]
    values = list(HOSTILE.values())
    generator = np.random.default_rng(3)
    for first, second in itertools.combinations(make(), 2):
        for _ in range(60):
            a, b = (values[n]() for n in generator.integers(0, len(values), 2))
            outcome(call, {**make(), first: a, second: b})


def test_bad_text_of_bindings():
    for call in (COMPILED.dispatch, COMPILED, COMPILED.initialize):
        for key in ("", "\ud800", "InputTensor\0", "x" * 10_000):
            with pytest.raises(dml.BindingError):
                call(**{key: X})


@pytest.mark.filterwarnings("ignore")
def test_many_threads_with_hostile_arguments():
    errors = []

    def work(seed):
        generator = np.random.default_rng(seed)
        names = [name for name, (_, make) in CALLS.items() if "out" in make()]
        values = list(HOSTILE.values())
        try:
            for _ in range(150):
                call, make = CALLS[names[int(generator.integers(len(names)))]]
                arguments = make()
                argument = list(arguments)[int(generator.integers(len(arguments)))]
                outcome(call, {**arguments, argument: values[generator.integers(len(values))]()})
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
