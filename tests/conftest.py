"""What all tests share: hypothesis profiles, and which tests run without being asked for."""

import os
import time
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# The first three are the same on every run; `explore` looks for new cases, `heavy` for many.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    "report_multiple_bugs": False,
}
_SAME = {"derandomize": True, "database": None, **_COMMON}
settings.register_profile("default", max_examples=10, **_SAME)
settings.register_profile("thorough", max_examples=60, **_SAME)
settings.register_profile("brief", max_examples=8, **_SAME)
settings.register_profile("explore", max_examples=300, **_COMMON)
settings.register_profile("heavy", max_examples=3000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Processes that tests start find `support` as the tests do.
_OTHERS = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *_OTHERS])

# Workers share a GPU, of which each JAX would reserve three quarters.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


# Tests with these markers run only where a marker expression (-m) selects them.
_ON_REQUEST = ("slow", "heavy", "soak", "gpu")


def pytest_addoption(parser):
    parser.addoption("--shard", metavar="N/OF", default="1/1", help="the Nth part of the tests")
    parser.addoption("--note-passed", metavar="FILE", help="write the names of what passes")
    parser.addoption("--seconds", type=float, help="leave out what has not begun after so long")
    parser.addoption("--leave-out", metavar="FILE", help="tests that another run noted")


def pytest_collection_modifyitems(config, items):
    number, of = map(int, config.option.shard.split("/"))
    noted = config.option.leave_out
    passed = set(Path(noted).read_text().splitlines()) if noted else set()

    def runs(item):
        asked = config.option.markexpr or not any(map(item.get_closest_marker, _ON_REQUEST))
        mine = zlib.crc32(item.nodeid.encode()) % of == number - 1
        return asked and mine and item.nodeid not in passed

    config.hook.pytest_deselected(items=[item for item in items if not runs(item)])
    items[:] = filter(runs, items)


_BEGIN = pytest.StashKey[float]()


def pytest_sessionstart(session):
    session.stash[_BEGIN] = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    most = item.config.option.seconds
    if most is not None and time.monotonic() - item.session.stash[_BEGIN] > most:
        pytest.skip(f"not begun after {most:g} seconds")


def pytest_terminal_summary(terminalreporter, config):
    if config.option.note_passed:
        names = [report.nodeid for report in terminalreporter.stats.get("passed", [])]
        Path(config.option.note_passed).write_text("\n".join(names))


@pytest.fixture
def moments():
    """How long something is tried that may happen at any moment, of the seconds that are asked."""
    fewer = os.environ.get("HYPOTHESIS_PROFILE") == "brief"
    return lambda seconds: seconds * 0.3 if fewer else seconds


@pytest.fixture(params=[1, 2, 4], ids=lambda count: f"{count} threads")
def threads(request):
    """The test, at several numbers of threads."""
    import anydml as dml

    with dml.num_threads(request.param):
        yield request.param
