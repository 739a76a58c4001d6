"""Functions and libraries against the promises: each in a process of its own where it may crash."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

import numpy as np

from anydml.core.errors import ArgumentError
from anydml.judge.documented import page_of
from anydml.judge.libraries import LIBRARIES, Library, NumPy, versions_here
from anydml.judge.promises import PROMISES, Promise, RefusedError, UntriedError

FUNCTIONS: Final = tuple(dict.fromkeys(promise.function for promise in PROMISES))
SECONDS: Final = 300
"""How long a process may take for the promises of one function."""
ENDED: Final = ("", "")
"""How a process ended that leaves further promises to another one."""


@dataclass(frozen=True)
class Answer:
    """Whether a function keeps a promise.

    Attributes
    ----------
    library : str
        The library, or the name of the function that was given.
    promise : Promise
        The promise.
    verdict : str
        ``yes``; ``no``; ``refuses`` where valid arguments raise an error; ``crashes``; ``hangs``;
        ``none`` where the library has no such function, choice of threads, gradient or CUDA graph.
    example : str
        The first case that breaks the promise; empty for ``yes``.
    page : str or None
        The page of the library's documentation that makes the promise.
    """

    library: str
    promise: Promise
    verdict: str
    example: str = ""
    page: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The answer as data."""
        promise = {name: getattr(self.promise, name) for name in ("function", "name", "text")}
        return {**vars(self), "promise": promise}


class Judged:
    """A function on a library's arrays, called with NumPy's.

    `is_own`: whether the library's number of threads is that of the function.
    """

    def __init__(
        self, library: Library, function: Callable[..., Any], is_own: bool = False
    ) -> None:
        self._library, self._function, self._is_own = library, function, is_own
        self.has_raised = False

    def __call__(self, *arguments: Any) -> Any:
        given = self._library.taken(arguments)
        return self._tried(lambda: self._function(*given), given[0])

    def further(self, what: str, *arguments: Any) -> Any:
        """Call the library's ``gradient`` or ``replay``; raise `UntriedError` if it has none."""
        method = getattr(self._library, what)
        return self._tried(lambda: method(self._function, *arguments), None)

    def _tried(self, run: Callable[[], Any], first: Any) -> Any:
        try:
            found = run()
            if isinstance(found, tuple | list):
                return [self._library.numpy(x) for x in found]
            return self._library.numpy(found)
        except UntriedError:
            raise
        except Exception as error:
            self.has_raised = True
            text = f"{type(error).__name__}: {' '.join(str(error).split())[:120]}"
            raise RefusedError(text, self._left_in(first)) from error

    def _left_in(self, x: Any) -> Any:
        try:
            return self._library.numpy(x)
        except Exception:  # a list, or a device that is lost
            return None

    def threads(self, count: int) -> contextlib.AbstractContextManager[None]:
        """Set the number of threads of the function."""
        if not self._is_own:
            raise UntriedError
        return self._library.threads(count)

    def shares(self, size: int, count: int) -> bool:
        """Return whether writing to the first part of a split changes the array."""
        x = self._library.taken(np.zeros(size, "float32"))
        part = self._function(x, count)[0]
        try:
            part[...] = 1
        except TypeError:  # an array that cannot be written
            return False
        return bool(np.any(self._library.numpy(x)))


def _ask(name: str, promise: Promise, judged: Judged | None) -> Answer:
    page = page_of(name, promise.function, promise.name)
    if judged is None:
        return Answer(name, promise, "none", "", page)
    try:
        broken = promise.broken(judged)
    except UntriedError:
        return Answer(name, promise, "none", "", page)
    except RefusedError as error:
        return Answer(name, promise, "refuses", str(error), page)
    return Answer(name, promise, "no" if broken else "yes", broken or "", page)


def _judge_function(kind: str) -> Callable[..., list[Answer]]:
    promises = {promise.name: promise for promise in PROMISES if promise.function == kind}

    def judge_function(
        function: Callable[..., Any], library: str = "numpy", names: Sequence[str] = ()
    ) -> list[Answer]:
        _known("library", [library], LIBRARIES)
        _known("names", names, promises)
        judged = Judged(LIBRARIES[library][0](), function)
        called = getattr(function, "__name__", type(function).__name__)
        asked = names or [name for name, promise in promises.items() if not promise.is_large]
        return [_ask(called, promises[name], judged) for name in asked]

    judge_function.__name__ = kind
    judge_function.__doc__ = f"""Judge a function by the promises of `{kind}`, in this process.

    Parameters
    ----------
    function : callable
        Takes and returns arrays of `library`, as {_TAKES[kind]}.
    library : str
        ``numpy``, ``torch``, ``jax``, ``dask``: whose arrays the function takes.
    names : sequence of str
        Names of promises; by default all but those of large arrays.

    Returns
    -------
    list of Answer
        One for each promise.
    """
    return judge_function


_TAKES: Final = {
    "top_k": "``f(x, k)`` -> values and indices of the k largest elements of the last axis",
    "nonzero": "``f(x)`` -> coordinates of shape (count, rank)",
    "scatter": "``f(x, indices, updates)`` -> a new array, with updates in axis 0",
    "scatter_into": "``f(x, indices, updates)``, which writes updates into `x`",
    "scatter_add": "``f(x, indices, updates)`` -> a new array, with updates added in axis 0",
    "gather": "``f(x, indices)`` -> the elements of axis 0 at the indices",
    "split": "``f(x, count)`` -> equal parts of axis 0",
    "join": "``f(arrays)`` -> the arrays one behind the other in axis 0",
}

top_k, nonzero, scatter, scatter_into, scatter_add, gather, split, join = map(
    _judge_function, _TAKES
)


def _known(what: str, given: Sequence[str], known: Any) -> None:
    for name in given:
        if name not in known:
            raise ArgumentError(f"{what}: expected one of {', '.join(known)}, got {name!r}")


def judge(
    libraries: Sequence[str] = (), functions: Sequence[str] = (), device: str = "cpu",
    seconds: float = SECONDS, large: bool = False,
) -> list[Answer]:  # fmt: skip
    """Judge libraries, each function in a process of its own.

    Parameters
    ----------
    libraries : sequence of str
        Names of libraries, all that are installed by default; or ``MODULE:FUNCTION`` of a function
        on NumPy's arrays, which is judged by each of `functions`.
    functions : sequence of str
        ``top_k``, ``nonzero``, ``scatter``, ``scatter_into``, ``scatter_add``, ``gather``,
        ``split``, ``join``; all by default.
    device : str
        ``cpu`` or ``cuda``.
    seconds : float
        How long the promises of one function may take.
    large : bool
        Whether to try arrays of more than 2^31 elements, too; ``none`` with less than 16 GiB free.

    Returns
    -------
    list of Answer
        By library and promise. A process that crashes or hangs is the answer of the promise that
        it was at; the promises behind it are asked in another one.
    """
    _known("device", [device], ("cpu", "cuda"))
    here = versions_here(device)
    named = [name for name in libraries if ":" not in name]
    _known("library", named, LIBRARIES)
    _known(f"library: of those installed for {device}", named, here)
    _known("function", functions, FUNCTIONS)
    if len(named) < len(libraries) and not functions:
        raise ArgumentError("functions: expected what MODULE:FUNCTION is judged by, got none")
    answers: list[Answer] = []
    for name in libraries or here:
        for function in functions or FUNCTIONS:
            answers += _in_processes(name, function, device, seconds, large)
    return answers


def _in_processes(
    name: str, function: str, device: str, seconds: float, large: bool
) -> Iterator[Answer]:
    left = [p for p in PROMISES if p.function == function and (large or not p.is_large)]
    while left:
        found, how = _ask_process(name, [*map(PROMISES.index, left)], device, seconds)
        for promise, (verdict, example, page) in zip(left, found, strict=False):
            yield Answer(name, promise, verdict, example, page)
        left = left[len(found) :]
        if left and how != ENDED:
            yield replace(_ask(name, left.pop(0), None), verdict=how[0], example=how[1])


def _ask_process(
    name: str, numbers: Sequence[int], device: str, seconds: float
) -> tuple[list[list[Any]], tuple[str, str]]:
    """The answers of a process up to where it ended, and how it did."""
    command = [sys.executable, "-m", "anydml.judge", name, device, *map(str, numbers)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        out, how = error.stdout or b"", ("hangs", f"no answer within {seconds:g} seconds")
    else:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or [""]
        is_crash = done.returncode or not done.stdout
        crash = "crashes", f"exit status {done.returncode}. {last[0]}".strip()
        out, how = done.stdout, crash if is_crash else ENDED
    lines = out.splitlines(keepends=True)  # the last may have been cut
    return [json.loads(line) for line in lines if line.endswith(b"\n")], how


def answer_to(name: str, device: str, numbers: Sequence[int]) -> None:
    """Print the answers to promises as JSON, a line each: what such a process does."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    is_own = ":" not in name
    if not is_own:
        module, _, attribute = name.partition(":")
        sys.path.insert(0, "")
        library: Library = NumPy()
        library.functions = dict.fromkeys(FUNCTIONS, getattr(import_module(module), attribute))
    else:
        library = LIBRARIES[name][0](device)
    for number in numbers:
        promise = PROMISES[number]
        function = library.functions.get(promise.function)
        judged = None if function is None else Judged(library, function, is_own)
        answer = _ask(name, promise, judged)
        line = json.dumps([answer.verdict, answer.example, answer.page])
        print(line, file=answers, flush=True)
        if device == "cuda" and judged is not None and judged.has_raised:
            os._exit(0)  # after an error in a kernel of a GPU, nothing else works in the process
