"""What all tests share: hypothesis profiles; heavy tests and those on a GPU only on request."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

# The default is the same on every run; `explore` looks for new cases, `heavy` for many.
_COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow],
    "phases": (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    "report_multiple_bugs": False,
}
settings.register_profile("default", max_examples=60, derandomize=True, database=None, **_COMMON)
settings.register_profile("brief", max_examples=8, derandomize=True, database=None, **_COMMON)
settings.register_profile("explore", max_examples=300, **_COMMON)
settings.register_profile("heavy", max_examples=3000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Processes that tests start find `support` as the tests do.
_OTHERS = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), *_OTHERS])


def pytest_collection_modifyitems(config, items):
    if config.option.markexpr:
        return
    asked_for = [item for item in items if _asked_for(item)]
    config.hook.pytest_deselected(items=asked_for)
    items[:] = [item for item in items if not _asked_for(item)]


def _asked_for(item):
    return item.get_closest_marker("heavy") or item.get_closest_marker("gpu")


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
