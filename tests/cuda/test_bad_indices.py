"""Indices out of range on a GPU: who is told, when, and in which words.

A stand-in for the driver finds what STUB_BAD says; the kernels' own findings are compared on a GPU
(native/tests/cuda/gather_test.cpp, tests/gpu/test_gathers.py).
"""

import pytest
from cupy_stand_in import CUPY

CALLS = (
    CUPY
    + """
data = np.arange(60, dtype=np.float32).reshape(5, 12)
at = np.array([[0, 4, 1], [2, 3, 9]], np.int64)
x, indices = ndarray(data), ndarray(at)


def told(call):
    try:
        print(type(call()).__name__)
    except dml.AnyDMLError as error:
        print(type(error).__name__, error, sep=": ")
        return error

"""
)
BAD = {"STUB_BAD": "5=9"}
WORDS = "gather: indices[1, 2]: expected -5..4 (axis 0 of size 5), got 9"
EARLIER = f"IndexOutOfRangeError: {WORDS}; found on cuda:1 in an earlier call"


class TestWhoIsTold:
    def test_the_next_call_on_the_device_and_no_other(self, with_stubs):
        code = """
        result = dml.gather(x, indices)
        print(type(result).__name__, result.shape)
        error = told(lambda: dml.top_k(x, 2))
        print(error.position, error.value, error.size)
        told(lambda: dml.top_k(x, 2))
        """
        assert with_stubs(CALLS + _plain(code), **BAD).splitlines() == [
            "ndarray (2, 3, 12)",
            EARLIER,
            "(1, 2) 9 5",
            "TopKResult",
        ]

    def test_the_words_are_the_cpus(self, with_stubs):
        code = """
        told(lambda: dml.gather(data, at))
        dml.gather(x, indices)
        told(dml.synchronize)
        """
        on_cpu, on_gpu = with_stubs(CALLS + _plain(code), **BAD).splitlines()
        assert on_cpu == f"IndexOutOfRangeError: {WORDS}"
        assert on_gpu == EARLIER

    def test_a_call_that_waits_is_told_itself(self, with_stubs):
        code = "told(lambda: dml.gather(x, indices))\ntold(dml.synchronize)"
        out = with_stubs(CALLS + code, ANYDML_BLOCKING="1", **BAD)
        assert out.splitlines() == [f"IndexOutOfRangeError: {WORDS}", "NoneType"]

    def test_calls_of_several_are_told_once(self, with_stubs):
        # Calls that did not look in between: of another device's thread, say.
        code = """
        dml.gather(x, indices)
        for _ in range(300):  # more than the buffer holds
            stub().stub_replay()
        told(dml.synchronize)
        told(dml.synchronize)
        """
        first, second = with_stubs(CALLS + _plain(code), **BAD).splitlines()
        assert first.startswith(EARLIER + ", and 255 more calls had one")
        assert second == "NoneType"

    def test_arrays_on_the_host_are_not_written(self, with_stubs):
        code = """
        desc = dml.Gather(
            input_tensor=dml.TensorDesc("FLOAT32", (1, 5, 12)),
            indices_tensor=dml.TensorDesc("INT64", (1, 2, 3)),
            output_tensor=dml.TensorDesc("FLOAT32", (2, 3, 12)), axis=1, index_dimensions=2)
        compiled = dml.Device("cuda").create_operator(desc).compile()
        output = np.full((2, 3, 12), 7, np.float32)
        bound = dict(InputTensor=data.reshape(1, 5, 12), IndicesTensor=at.reshape(1, 2, 3),
                     OutputTensor=output)
        told(lambda: compiled.dispatch(**bound))
        print((output == 7).all())
        cpu = dml.Device("cpu").create_operator(desc).compile()
        told(lambda: cpu.dispatch(**bound))
        print(stub().stub_lent(), stub().stub_depth())
        """
        on_gpu, kept, on_cpu, balance = with_stubs(CALLS + _plain(code), **BAD).splitlines()
        assert on_gpu == on_cpu
        assert "GATHER.IndicesTensor[0, 1, 2]: expected -5..4 (axis 1 of size 5), got 9" in on_gpu
        assert kept == "True"
        assert balance == "0 0"

    @pytest.mark.parametrize(
        ("ending", "line"),
        [
            ("", f"anydml: {WORDS}; found on cuda:1 in an earlier call\n"),
            ("told(dml.synchronize)", ""),
            ("import os; os.environ['ANYDML_QUIET'] = '1'", f"anydml: {WORDS}; found on cuda:1"),
        ],
    )
    def test_the_end_of_the_interpreter(self, with_stubs, ending, line):
        code = f"dml.gather(x, indices)\n{ending}\n"
        output = with_stubs(CALLS + code, errors=True, ANYDML_QUIET="1", **BAD)
        assert output == line if line.endswith("\n") or not line else line in output

    def test_another_threads_call(self, with_stubs):
        code = """
        import threading
        thread = threading.Thread(target=lambda: dml.gather(x, indices))
        thread.start()
        thread.join()
        told(lambda: dml.gather(x, indices))
        """
        assert with_stubs(CALLS + _plain(code), **BAD).startswith(EARLIER)

    def test_a_forked_process_ends_quietly(self, with_stubs):
        code = """
        dml.gather(x, indices)
        if os.fork() == 0:
            sys.exit(0)
        os.wait()
        told(dml.synchronize)
        """
        assert with_stubs(CALLS + _plain(code), **BAD) == EARLIER + "\n"


class TestGraphs:
    def test_a_replay_is_told_of_its_call(self, with_stubs):
        code = """
        os.environ.pop("STUB_BAD")
        dml.gather(x, indices)
        libc = ctypes.CDLL(None)
        libc.setenv(b"STUB_FAIL", b"cuStreamIsCapturing=0", 1)
        libc.setenv(b"STUB_CAPTURING", b"1", 1)
        libc.setenv(b"STUB_BAD", b"3=-7", 1)
        dml.gather(x, indices)  # nothing of it has run: the stand-in finds it all the same
        libc.unsetenv(b"STUB_CAPTURING")
        for _ in range(2):
            told(dml.synchronize)
            stub().stub_replay()
        """
        words = "gather: indices[1, 0]: expected -5..4 (axis 0 of size 5), got -7"
        output = f"IndexOutOfRangeError: {words}; found on cuda:1 in a call captured in a graph"
        assert with_stubs(CALLS + _plain(code), STUB_BAD="x").splitlines() == [output, output]

    def test_the_first_call_cannot_be_captured(self, with_stubs):
        out = with_stubs(CALLS + "told(lambda: dml.gather(x, indices))", STUB_CAPTURING="1")
        assert "DeviceError: a CUDA graph is being captured" in out
        assert "before the capture" in out


class TestArguments:
    def test_modes(self, with_stubs):
        code = """
        told(lambda: dml.gather(x, indices, mode="clamp"))
        told(dml.synchronize)
        told(lambda: dml.gather(x, indices, mode="wrap"))
        told(lambda: dml.gather(x, indices, mode="clip"))
        """
        lines = with_stubs(CALLS + _plain(code), **BAD).splitlines()
        assert lines == ["ndarray", "NoneType", "ndarray", "ndarray"]

    def test_types_and_places(self, with_stubs):
        code = """
        told(lambda: dml.gather(x, ndarray(at.astype(np.int16))))
        told(lambda: dml.gather(x, ndarray(at.astype(np.float32))))
        told(lambda: dml.gather(x, at))
        told(lambda: dml.gather(data, indices))
        """
        small, floats, ours, theirs = with_stubs(CALLS + _plain(code)).splitlines()
        assert "indices: expected int64, got int16" in small
        assert "dml.cast" in small
        assert "indices: expected one of int64, int32, uint32, uint64" in floats
        for arrays in (ours, theirs):
            assert arrays.endswith("expected all on one device, got cuda:1 and the CPU")

    def test_broadcast(self, with_stubs):
        code = """
        row = ndarray(at[:1])
        result = dml.gather_elements(ndarray(data[:, :3]), row, broadcast=True)
        print(result.shape, dml.gather_elements(ndarray(data[:, :1]), row, broadcast=True).shape)
        told(lambda: dml.gather_elements(ndarray(data[:, :2]), row, broadcast=True))
        print(dml.gather(ndarray(data[0, 0]), row).shape)
        """
        shapes, wrong, scalar = with_stubs(CALLS + _plain(code)).splitlines()
        assert shapes == "(1, 3) (1, 3)"
        assert "can be broadcast" in wrong
        assert scalar == "(1, 3)"


def _plain(code):
    from textwrap import dedent

    return dedent(code)
