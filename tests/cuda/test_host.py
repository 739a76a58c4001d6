"""The host side of the GPU backend, on stand-ins for driver and compiler.

No kernel runs here. What is tested: devices, contexts, memory, streams, launches, errors, and the
cache of compiled kernels.
"""

import os
import stat
import textwrap

import pytest
from cupy_stand_in import CUPY

# An operator that takes a kernel: a plain copy would not.
CAST = """
x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
y = np.empty(x.shape, np.int32)
desc = dml.Cast(
    input_tensor=dml.TensorDesc.from_array(x), output_tensor=dml.TensorDesc.from_array(y)
)
"""


class TestDevices:
    def test_they_are_listed(self, with_stubs):
        out = with_stubs("print(cuda.gpus())")
        assert "Stub GPU 0" in out
        assert "Stub GPU 1" in out
        assert "'13.0'" in out

    def test_one_is_named_by_its_number(self, with_stubs):
        code = """
        a, b = dml.Device("cuda"), dml.Device("cuda:1")
        print(a, b, a == dml.Device("cuda:0"), a == b)
        """
        out = with_stubs(code)
        assert "Device('cuda:0'" in out
        assert "Device('cuda:1'" in out
        assert out.endswith("True False\n")

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("cuda:2", "expected a GPU of this machine (it has 2), got cuda:2"),
            ("cuda:-1", "cuda:N, xla, xla:PLATFORM, reference, auto, got 'cuda:-1'"),
            ("cuda:01", "cuda:N, xla, xla:PLATFORM, reference, auto, got 'cuda:01'"),
        ],
    )
    def test_others_are_refused(self, with_stubs, name, message):
        code = f"""
        try:
            dml.Device({name!r})
        except dml.DeviceError as error:
            print(error)
        """
        assert message in with_stubs(code)

    @pytest.mark.parametrize(
        ("variables", "message"),
        [
            ({"STUB_DRIVER": "libno-such-driver.so"}, "no NVIDIA driver: libno-such-driver.so"),
            ({"STUB_DEVICES": "0"}, "no usable NVIDIA GPU: no device (100)"),
            ({"STUB_FAIL": "cuInit=999"}, "no usable NVIDIA GPU: stub error (999)"),
        ],
    )
    def test_a_machine_without(self, with_stubs, variables, message):
        code = """
        try:
            dml.Device("cuda")
        except dml.DeviceError as error:
            print(error)
        print(dml.Device("auto").kind, dml.top_k([1, 3, 2], 1).values)
        """
        out = with_stubs(code, **variables)
        assert message in out
        assert out.endswith("cpu [3]\n")


class TestCalls:
    def test_memory_and_contexts_are_given_back(self, with_stubs):
        code = (
            CAST
            + """
for device in ("cuda:0", "cuda:1"):
    compiled = dml.Device(device).create_operator(desc).compile()
    compiled.dispatch(InputTensor=x, OutputTensor=y)
lines = log()
counts = [lines.count(line) for line in ("pop", "push 0", "push 1")]
print(stub().stub_lent(), stub().stub_depth(), *counts)
print(*[line for line in lines if line.startswith("launch")], sep="\\n")
"""
        )
        first, *launches = with_stubs(code).splitlines()
        lent, depth, pops, pushed_0, pushed_1 = map(int, first.split())
        assert (lent, depth) == (0, 0)
        assert pushed_0 == pushed_1 > 0
        assert pops == pushed_0 + pushed_1
        assert len(launches) == 2

    @pytest.mark.parametrize(
        ("failing", "error"),
        [
            ("cuMemAllocFromPoolAsync=2", "AllocationError"),
            ("cuMemcpyHtoDAsync=700", "DeviceError: cuMemcpyHtoDAsync: stub error (700)"),
            ("cuLaunchKernel=701", "DeviceError: cuLaunchKernel: stub error (701)"),
            ("cuStreamSynchronize=719", "DeviceError: cuStreamSynchronize: stub error (719)"),
            ("cuModuleLoadData=209", "DeviceError: cuModuleLoadData: stub error (209)"),
            ("cuModuleGetFunction=500", "DeviceError: cuModuleGetFunction: stub error (500)"),
            ("cuDevicePrimaryCtxRetain=46", "DeviceError: cuDevicePrimaryCtxRetain"),
            ("cuMemPoolCreate=801", "DeviceError: cuMemPoolCreate: stub error (801)"),
            ("pools=1", "this device has no memory pools"),
        ],
    )
    def test_what_the_driver_refuses(self, with_stubs, failing, error):
        code = (
            CAST
            + """
try:
    compiled = dml.Device("cuda").create_operator(desc).compile()
    compiled.dispatch(InputTensor=x, OutputTensor=y)
except dml.AnyDMLError as error:
    print(type(error).__name__, error, sep=": ")
print(stub().stub_lent(), stub().stub_depth())
"""
        )
        out = with_stubs(code, STUB_FAIL=failing)
        assert error in out
        assert out.endswith("\n0 0\n")

    def test_a_process_ends_while_a_thread_waits_for_the_gpu(self, with_stubs):
        code = (
            CAST
            + """
import threading, time
compiled = dml.Device("cuda").create_operator(desc).compile()

def work():
    while True:
        compiled.dispatch(InputTensor=x, OutputTensor=y)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("done", flush=True)
"""
        )
        assert with_stubs(code, STUB_SLEEP="40") == "done\n"

    def test_a_forked_process_is_told(self, with_stubs):
        code = (
            CAST
            + """
compiled = dml.Device("cuda").create_operator(desc).compile()
compiled.dispatch(InputTensor=x, OutputTensor=y)
if os.fork() == 0:
    try:
        compiled.dispatch(InputTensor=x, OutputTensor=y)
    except dml.DeviceError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
compiled.dispatch(InputTensor=x, OutputTensor=y)
"""
        )
        assert "CUDA was used before this process was forked" in with_stubs(code)


class TestOwned:
    def test_copies_stay_on_the_gpu_and_pickle_by_the_host(self, with_stubs):
        # Packed copies are memory copies, which the stand-in makes.
        code = """
        import pickle
        x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
        tensor = dml.TensorDesc.from_array(x)
        owned = dml.TensorDesc("FLOAT32", x.shape, flags="OWNED_BY_DML")
        desc = dml.ElementWiseIdentity(input_tensor=owned, output_tensor=tensor)
        operator = dml.Device("cuda:1").create_operator(desc).compile().initialize(InputTensor=x)
        copied = pickle.loads(pickle.dumps(operator))
        x[...] = 0
        for one in (operator, copied):
            y = np.empty_like(x)
            one.dispatch(OutputTensor=y)
            print(y.ravel().tolist() == list(range(12)), one.operator.device.kind)
        del one, operator, copied
        print(stub().stub_lent(), stub().stub_depth())
        """
        assert with_stubs(code) == "True cuda:1\nTrue cuda:1\n0 0\n"


class TestLaunches:
    def test_of_every_operator_are_what_a_driver_takes(self, with_stubs):
        # The stand-in refuses grids and blocks that a driver refuses; results are not looked at.
        code = """
        from hypothesis import HealthCheck, given, settings, strategies as st
        from support import strategies

        device = dml.Device("cuda")
        kinds = [kind for kind in vars(dml).values() if getattr(kind, "KERNEL", None)
                 in native.kernels()]
        assert len(kinds) > 5
        for kind in kinds:
            @settings(max_examples=60, derandomize=True, database=None, deadline=None,
                      suppress_health_check=list(HealthCheck))
            @given(strategies.descriptors(kind))
            def check(desc):
                compiled = device.create_operator(desc).compile()
                compiled(*[np.zeros(slot.declared, slot.spec.dtype)
                           for slot in compiled.program.inputs]
                         if not hasattr(desc, "input_tensors")
                         else [[np.zeros(t.sizes, t.data_type.numpy) for t in desc.input_tensors]])
            check()
        print(stub().stub_lent(), stub().stub_depth())
        """
        assert with_stubs(code) == "0 0\n"


class TestCache:
    def test_all_can_be_compiled_ahead(self, with_stubs, tmp_path):
        code = """
        from anydml.cli.command import main
        main(["warm"])
        main(["warm"])
        """
        count = int(with_stubs("print(cuda.variants())"))
        lines = with_stubs(code, STUB_DEVICES="1").splitlines()
        assert lines == [
            f"cuda:0 (Stub GPU 0): {count} of {count} compiled",
            f"cuda:0 (Stub GPU 0): 0 of {count} compiled",
        ]
        assert self.compiled(tmp_path) == count

    def run(self, with_stubs, **variables):
        code = (
            CAST
            + """
compiled = dml.Device("cuda").create_operator(desc).compile()
compiled.dispatch(InputTensor=x, OutputTensor=y)
"""
        )
        return with_stubs(code, errors=True, **variables)

    def compiled(self, tmp_path):
        path = tmp_path / "compiled"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def test_compiled_once(self, with_stubs, tmp_path):
        assert self.run(with_stubs).count("compiling kernels for this GPU") == 1
        count = self.compiled(tmp_path)
        assert count > 0
        assert self.run(with_stubs) == ""
        assert self.compiled(tmp_path) == count

    def test_the_announcement_can_be_left_out(self, with_stubs):
        assert self.run(with_stubs, ANYDML_QUIET="1") == ""

    def test_folder_and_files_are_the_users_alone(self, with_stubs, tmp_path):
        self.run(with_stubs)
        folder = tmp_path / "cache"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        files = list(folder.iterdir())
        assert files
        assert all(stat.S_IMODE(f.stat().st_mode) == 0o600 for f in files)
        assert all(f.suffix == ".cubin" for f in files)  # no draft is left

    @pytest.mark.parametrize(
        "harm", ["cut short", "one bit", "empty", "another's", "a link", "writable by others"]
    )
    def test_a_damaged_or_foreign_file_is_made_again(self, with_stubs, tmp_path, harm):
        self.run(with_stubs)
        count = self.compiled(tmp_path)
        files = sorted((tmp_path / "cache").iterdir())
        contents = [f.read_bytes() for f in files]
        for file, content in zip(files, contents, strict=True):
            if harm == "cut short":
                file.write_bytes(content[:-1])
            elif harm == "one bit":
                file.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
            elif harm == "empty":
                file.write_bytes(b"")
            elif harm == "another's":  # of another key: whoever renames it
                file.write_bytes(content.replace(b"sm_90", b"sm_80"))
            elif harm == "a link":
                target = tmp_path / "elsewhere"
                target.write_bytes(content)
                file.unlink()
                file.symlink_to(target)
            else:
                file.chmod(0o666)
        self.run(with_stubs)
        assert self.compiled(tmp_path) == 2 * count
        assert [f.read_bytes() for f in files] == contents

    def test_a_folder_that_others_may_write_is_not_used(self, with_stubs, tmp_path):
        folder = tmp_path / "cache"
        folder.mkdir()
        folder.chmod(0o777)
        self.run(with_stubs)
        assert not list(folder.iterdir())

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
    def test_a_folder_that_cannot_be_written(self, with_stubs, tmp_path):
        (tmp_path / "cache").mkdir(mode=0o500)
        self.run(with_stubs)

    def test_no_compiler(self, with_stubs):
        code = (
            CAST
            + """
try:
    compiled = dml.Device("cuda").create_operator(desc).compile()
    compiled.dispatch(InputTensor=x, OutputTensor=y)
except dml.DeviceError as error:
    print(error)
"""
        )
        assert "pip install nvidia-cuda-nvrtc" in with_stubs(code, STUB_NVRTC="libnone.so")
        assert "line 1: stub log" in with_stubs(code, STUB_NVRTC_FAIL="1")


def test_a_library_on_the_gpu(with_stubs):
    # The count that the stand-in driver gives back is zero's pattern.
    code = """
    x = ndarray(np.arange(100, dtype=np.int32))
    values, indices = dml.top_k(x, 3)
    print(type(values) is ndarray, values.shape, indices.shape)
    print(all("stream 0x40" in line for line in log() if line.startswith("launch")))
    print(log()[0])
    try:
        dml.join([x, np.arange(3, dtype=np.int32)])
    except dml.ArgumentError as error:
        print(error)
    print(dml.gather(x, x).shape)
    places = ndarray(np.arange(100))
    for options in (
        {},
        {"reduction": "add"},
        {"reduction": "max", "include_self": False},
        {"reduction": "mean"},
        {"reduction": "mean", "include_self": False},
    ):
        for updates in (x, 7):
            result = dml.scatter_elements(x, places, updates, **options)
            assert type(result) is ndarray and result.shape == (100,)
    print(stub().stub_lent(), stub().stub_depth())
    """
    program = CUPY + textwrap.dedent(code)
    kind, streams, first, message, gathered, balance = with_stubs(program).splitlines()
    assert kind == "True (3,) (3,)"
    assert streams == "True"
    assert first == "push 1"
    assert message == "arrays: expected all on one device, got cuda:1 and the CPU"
    assert gathered == "(100,)"
    assert balance == "0 0"


TOP_K = """
sizes, axis = {sizes}, {axis}
results = (*sizes[:axis], 8, *sizes[axis + 1 :])
operands = [
    cuda.uploaded(np.zeros(shape, kind), 0, 0)
    for shape, kind in ((sizes, "f4"), (results, "f4"), (results, "u4"))
]
given = dict(axis=axis, k=8, largest=True)
cuda.CudaKernels(0, 0).execute("top_k", operands[:1], operands[1:], given, True, 1)
print([line.split(" stream")[0] for line in log() if line[:3] in ("coo", "clu", "beh", "lau")])
"""


class TestWaysToLaunch:
    def test_few_long_rows_take_one_launch_of_clusters(self, with_stubs):
        out = with_stubs(TOP_K.format(sizes=(1, 1, 1, 1 << 17), axis=3))
        assert out == "['cluster', 'launch top_k_select 2x1 1024']\n"

    def test_what_chooses_among_parts_follows_closely(self, with_stubs):
        out = with_stubs(TOP_K.format(sizes=(1, 1, 16384, 32), axis=2))
        assert out == "['launch top_k_columns 64x1 256', 'behind', 'launch top_k_short 32x1 64']\n"

    def test_it_does_not_where_a_graph_is_captured(self, with_stubs):
        out = with_stubs(TOP_K.format(sizes=(1, 1, 16384, 32), axis=2), STUB_CAPTURING="1")
        assert "behind" not in out


class TestCounts:
    CODE = """
    def count(size):
        counts = []

        def make(found):
            counts.append(found)
            return x.make((found, 1), np.dtype("u4"))

        x = cuda.uploaded(np.ones(size, np.float32), 0, 0)
        waits = log().count("wait")
        columns = {"columns": 1}
        cuda.CudaKernels(0, 0).run_measured("nonzero_coordinates", x, columns, make, 1)
        return counts[0], log().count("wait") - waits

    for size in (100, 100_000):  # a granule, and several
        assert count(size)[0] == int(os.environ["STUB_COUNT"])
    print(*count(100_000))
    """

    def test_the_host_is_told_and_does_not_wait(self, with_stubs):
        assert with_stubs(self.CODE, STUB_COUNT="37") == "37 0\n"

    def test_it_waits_where_nothing_comes(self, with_stubs):
        # For the work, which takes longer than the host looks; then it reads.
        assert with_stubs(self.CODE, STUB_COUNT="37", STUB_UNTOLD="1") == "37 2\n"

    def test_it_waits_without_memory_to_be_told_in(self, with_stubs):
        assert with_stubs(self.CODE, STUB_COUNT="37", STUB_FAIL="cuMemHostAlloc=2") == "37 1\n"

    def test_work_that_has_failed(self, with_stubs):
        code = """
        x = cuda.uploaded(np.ones(100, np.float32), 0, 0)
        ctypes.CDLL(None).setenv(b"STUB_FAIL", b"cuStreamSynchronize=719", 1)
        try:
            columns = {"columns": 1}
            cuda.CudaKernels(0, 0).run_measured("nonzero_coordinates", x, columns, print, 1)
        except dml.DeviceError as error:
            print(error)
        """
        out = with_stubs(code, STUB_UNTOLD="1", STUB_COUNT="1")
        assert "cuStreamSynchronize: stub error (719)" in out
