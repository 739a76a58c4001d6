"""What is installed is what users import: no benchmark, no test, nothing beside the package."""

from importlib.metadata import entry_points, files
from pathlib import Path

import anydml

DEVELOPMENT = {"bench", "benchmarks", "testing", "support", "tests", "scripts", "fuzz"}


def test_one_package_and_one_script_are_installed():
    installed = [path.parts for path in files("anydml") if "_editable" not in path.name]
    scripts = {parts[-1] for parts in installed if parts[0] == ".."}
    tops = {parts[0] for parts in installed if parts[0] != ".."}
    assert {name for name in tops if not name.endswith(".dist-info")} == {"anydml"}
    assert scripts == {"anydml"}
    assert not [parts for parts in installed if DEVELOPMENT & {*parts[:-1], parts[-1][:-3]}]


def test_the_package_holds_no_benchmark_and_no_test():
    folder = Path(anydml.__file__).parent
    names = {path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")}
    assert not [name for name in names if DEVELOPMENT & {*name.parts}]
    assert not [name for name in names if name.name.startswith(("test_", "conftest"))]


def test_the_command_is_in_the_package():
    (script,) = [one for one in entry_points(group="console_scripts") if one.name == "anydml"]
    assert script.value.partition(".")[0] == "anydml"
    assert callable(script.load())
