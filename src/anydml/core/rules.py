"""Rules as generators of violations, and `UNKNOWN`, which stands for an invalid value in them.

A rule yields violations and further rules. It ends where it decides by an unknown value, and the
other rules go on. So every rule is checked whose values are valid, although no rule lists them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeVar

from anydml.core.errors import Violation

T = TypeVar("T")

Rules = Iterable["Violation | Rules"]
"""The items that a rule yields: violations, and rules that end separately."""


class UnknownValueError(Exception):
    """A decision depends on an unknown value."""


class _UnhashableError(UnknownValueError, TypeError):
    """An unknown value is hashed; PyTorch's tracer expects a TypeError then."""


class _Unknown:
    """The class of `UNKNOWN`: what is computed from it is unknown, and a decision by it raises."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def _of(self, *_: Any) -> Any:
        return self

    def _decide(self, *_: Any) -> Any:
        raise UnknownValueError

    def __hash__(self) -> int:
        raise _UnhashableError

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _of
    __floordiv__ = __rfloordiv__ = __truediv__ = __rtruediv__ = __neg__ = _of
    __abs__ = __getitem__ = __call__ = _of
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _decide
    __bool__ = __index__ = __float__ = __iter__ = __len__ = __contains__ = _decide

    def __repr__(self) -> str:
        return "?"  # a size of a message that also names known sizes


UNKNOWN: Final[Any] = _Unknown()


def known(make: Callable[..., T], *values: Any) -> T:
    """Return ``make(*values)``, or UNKNOWN if it decides by an unknown value."""
    try:
        return make(*values)
    except UnknownValueError:
        return UNKNOWN  # type: ignore[no-any-return]  # stands for a value of any type


def is_known(value: Any) -> bool:
    """Whether a value is not UNKNOWN; its members may be unknown."""
    return value is not UNKNOWN


def differ(one: Any, other: Any) -> bool:
    """Whether two values are known and different."""
    return one is not UNKNOWN and other is not UNKNOWN and bool(one != other)


def find_violations(*rules: Rules) -> Iterator[Violation]:
    """The violations of rules, each as far as its values are known."""
    for rule in rules:
        try:
            for item in rule:
                if isinstance(item, Violation):
                    yield item
                else:
                    yield from find_violations(item)
        except UnknownValueError:
            pass
