"""What an installation says of itself: metadata, licences, and a README without dead links."""

import importlib.metadata
import os
import re
import tomllib
from pathlib import Path

import pytest

import anydml
from anydml.cli import command
from scripts import pythons

ROOT = Path(__file__).resolve().parents[2]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIGURATION["project"]


def test_the_readme_has_no_link_that_works_only_in_the_repository():
    settings = CONFIGURATION["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = (ROOT / settings["fragments"][0]["path"]).read_text()
    assert re.search(r"\]\((?!https?:)", text)
    assert "pip install '.[" in text
    for substitution in settings["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    assert not re.findall(r"\]\((?!https?:)[^)]*\)", text)
    assert "Guides: fix an E_INVALIDARG, also in C++" in text
    assert re.findall(r"pip install '?\.\S*", text) == ["pip install '.[test]'"]  # in a clone
    assert "pip install 'anydml[onnxruntime]'" in text
    assert "pip install anydml && anydml run" in text


def test_the_licences_of_what_is_linked_statically_are_there():
    for name in PROJECT["license-files"]:
        assert (ROOT / name).is_file()
    notices = (ROOT / "THIRD_PARTY_NOTICES").read_text()
    assert "Wenzel Jakob" in notices
    assert "Thibaut Goetghebuer-Planchon" in notices
    assert "GCC Runtime Library Exception" in notices
    assert PROJECT["license"] == "MIT AND BSD-3-Clause"


def test_the_notices_have_the_licence_of_the_installed_nanobind():
    try:
        distribution = importlib.metadata.distribution("nanobind")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("nanobind is not installed")
    (licence,) = (path for path in distribution.files if path.name == "LICENSE")
    assert licence.read_text().strip() in (ROOT / "THIRD_PARTY_NOTICES").read_text()


def test_every_level_is_built_unless_asked_otherwise():
    settings = CONFIGURATION["tool"]["scikit-build"]
    wheel = settings["cmake"]["define"]["ANYDML_LEVELS"]
    (editable,) = (o for o in settings["overrides"] if "state" in o["if"])
    assert wheel == {"env": "ANYDML_LEVELS", "default": "all"}
    assert editable["if"] == {"state": "editable"}
    commands = re.findall(r"^.*pip install .* && .*$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) == 2
    assert all(command.startswith("ANYDML_LEVELS=native ") for command in commands)


def claimed():
    """The minor versions of Python that the classifiers have."""
    found = [
        re.fullmatch(r"Programming Language :: Python :: 3\.(\d+)", text)
        for text in PROJECT["classifiers"]
    ]
    return {int(match[1]) for match in found if match}


def test_the_classifiers_begin_with_the_oldest_python():
    assert min(claimed()) == pythons.FIRST
    assert PROJECT["requires-python"] == f">=3.{pythons.FIRST}"


@pytest.mark.skipif(os.environ.get("CI") != "true", reason="other machines have other Pythons")
def test_the_classifiers_are_the_pythons_that_ci_tests():
    assert claimed() == {*pythons.interpreters()}


def test_one_sentence_says_everywhere_what_it_is():
    tagline = PROJECT["description"]
    (described,) = re.findall(r"^site_description: (.*)$", (ROOT / "mkdocs.yml").read_text(), re.M)
    assert described == tagline
    assert anydml.__doc__ == command.commands.help == f"{tagline}."
    for page in ("README.md", "docs/index.md"):
        text = (ROOT / page).read_text()
        assert f"\n**{tagline}**\n" in text
        assert "0x80070057" in text  # what people search for
