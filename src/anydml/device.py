"""`Device`: a backend and a feature level, and what they accept."""

from __future__ import annotations

from anydml._json import shown
from anydml.backends import backend_named, cuda
from anydml.errors import DeviceError, Violation
from anydml.levels import LATEST, FeatureLevel
from anydml.lifecycle import Operator, OutOfRange, checked_kind
from anydml.ops._descriptor import Descriptor


class Device:
    """Where operators run, and the feature level that they are checked against.

    Parameters
    ----------
    kind : str
        ``"cpu"``; ``"cuda"`` or ``"cuda:1"``, a GPU by its number; ``"reference"``, which runs
        every operator by its reference implementation, slow and obvious; or ``"auto"``, the one
        that has every operator and is fast: the CPU so far.
    feature_level : FeatureLevel or str
        As ``"5_0"``; the latest by default.

    Raises
    ------
    DeviceError
        A device that this machine or this installation does not have.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.Device("cpu", feature_level="3_0")
    Device('cpu', feature_level='3_0')
    """

    def __init__(self, kind: str = "auto", *, feature_level: FeatureLevel | str = LATEST) -> None:
        if not isinstance(kind, str):
            raise DeviceError(f"kind: expected a name as 'cpu', got {shown(kind)}")
        self.kind, self.backend = backend_named(kind)
        self.feature_level = FeatureLevel.parse(feature_level)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return (self.kind, self.feature_level) == (other.kind, other.feature_level)

    def __hash__(self) -> int:
        return hash((self.kind, self.feature_level))

    def __repr__(self) -> str:
        return f"Device({self.kind!r}, feature_level={self.feature_level.suffix!r})"

    def check(self, desc: Descriptor) -> list[Violation]:
        """Every rule that the descriptor breaks on this device; empty when it is good.

        Examples
        --------
        >>> import anydml as dml
        >>> tensor = dml.TensorDesc("FLOAT64", (4,))
        >>> desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
        >>> print(dml.Device("cpu", feature_level="3_0").check(desc)[0])  # doctest: +ELLIPSIS
        SPLIT.InputTensor.DataType: expected one of ... (FLOAT64 from 4_1), got FLOAT64
        """
        return checked_kind(desc).violations(self.feature_level)

    def minimum_feature_level(self, desc: Descriptor) -> FeatureLevel | None:
        """The lowest feature level that accepts the descriptor, or None when none does.

        Examples
        --------
        >>> import anydml as dml
        >>> tensor = dml.TensorDesc("FLOAT64", (4,))
        >>> desc = dml.Split(input_tensor=tensor, output_tensors=[tensor], axis=0)
        >>> dml.Device("cpu").minimum_feature_level(desc).suffix
        '4_1'
        """
        # Only at a row of the support table, or of a field's kind, can a level begin to accept.
        levels = {row.level for row in checked_kind(desc).SUPPORT}
        levels.update(level for info in desc.fields() for level in info.kind.levels)
        return next((level for level in sorted(levels) if not desc.violations(level)), None)

    def create_operator(self, desc: Descriptor, *, out_of_range: OutOfRange = "raise") -> Operator:
        """An operator for the descriptor, after checking every rule of its page.

        Parameters
        ----------
        desc : Descriptor
            As `TopK1`.
        out_of_range : str
            For the gathers: ``"raise"``, or ``"clamp"`` for the behaviour that the page of GATHER
            documents for invalid indices.

        Raises
        ------
        InvalidDescriptorError
            The descriptor breaks rules; ``violations`` has all of them.
        """
        return Operator(desc, self, out_of_range)  # which checks it


def synchronize() -> None:
    """Wait until the work of all calls on GPUs has run.

    On the CPU there is nothing to wait for.

    Raises
    ------
    IndexOutOfRangeError
        A call on a GPU had an index that points outside its axis; the message names the call.
    DeviceError
        A GPU failed.

    Examples
    --------
    >>> import anydml as dml
    >>> dml.synchronize()
    """
    cuda.synchronize()
