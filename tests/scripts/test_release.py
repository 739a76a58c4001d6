"""A release: what is set in one place, what is made of it, and what stops it."""

import io
import re
import shutil
import tarfile
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scripts")
    import addresses
    import release

    return SimpleNamespace(addresses=addresses, release=release)


@pytest.fixture
def copy(scripts, tmp_path):
    """A copy of what a release changes, with no address."""
    for name in (*scripts.release.FILES, "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    text = (tmp_path / "pyproject.toml").read_text()
    text = re.sub(r"(?<=^\[project\.urls\]\n)(\w+ = .*\n)+", "", text, flags=re.M)
    text = re.sub(r', email = "[^"]*"', "", text)
    (tmp_path / "pyproject.toml").write_text(text)
    return tmp_path


def test_addresses_have_one_place(scripts, copy):
    assert scripts.addresses.addresses(copy) == {}
    scripts.addresses.fill(copy, scripts.release.STAND_INS)
    assert scripts.addresses.addresses(copy) == scripts.release.STAND_INS
    assert set(scripts.release.STAND_INS) == set(scripts.addresses.NEEDED)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('Security = "mailto:us@example.org"', "project.urls.Security: expected an https address"),
        ('Repository = "https://"', "project.urls.Repository: expected an https address"),
        ('Home = "https://example.org"', "project.urls: expected names of .*, got Home"),
    ],
)
def test_an_address_that_nobody_can_use_is_refused(scripts, copy, line, message):
    path = copy / "pyproject.toml"
    path.write_text(path.read_text().replace("[project.urls]\n", f"[project.urls]\n{line}\n"))
    with pytest.raises(SystemExit, match=message):
        scripts.addresses.addresses(copy)


def test_a_release_is_prepared(scripts, copy):
    scripts.addresses.fill(copy, scripts.release.STAND_INS)
    (before,) = re.findall(r'^__version__ = "(.*)\.dev0"', (copy / FILE).read_text(), re.M)
    for version in (before, "7.8.0"):  # the links of a release do not stand in the way of the next
        assert scripts.release.prepare(copy, "2026-12-24") == version
        assert f'__version__ = "{version}"\n' in (copy / FILE).read_text()
        changes = (copy / "CHANGELOG.md").read_text()
        assert f"## [Unreleased]\n\n## [{version}] - 2026-12-24\n" in changes
        text = scripts_readme(copy, version)
        assert f"](https://example.org/anydml/repository/blob/v{version}/docs/install.md)" in text
        assert "(#" not in text
        scripts.release.set_version(copy, re.escape(version), "7.8.0.dev0")
        unreleased = changes.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Something.\n")
        (copy / "CHANGELOG.md").write_text(unreleased)


FILE = "src/anydml/__init__.py"


def scripts_readme(root, version):
    """The README as the package has it."""
    hook = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["metadata"][
        "hooks"
    ]
    text = (root / "README.md").read_text()
    for substitution in hook["fancy-pypi-readme"]["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    return text.replace("$HFPR_VERSION", version)


def test_a_release_without_changes_is_refused(scripts, copy):
    scripts.addresses.fill(copy, scripts.release.STAND_INS)
    (copy / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [0.0.1] - 2026-01-01\n"
    )
    with pytest.raises(SystemExit, match="expected changes under"):
        scripts.release.prepare(copy, "2026-12-24")


def sdist(folder, text, version="0.1.0"):
    path = folder / "made.tar.gz"
    body = f"Metadata-Version: 2.4\nName: anydml\nVersion: {version}\n\n{text}".encode()
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("anydml-0.1.0/PKG-INFO")
        member.size = len(body)
        archive.addfile(member, io.BytesIO(body))
    return path


def test_the_readme_on_pypi_is_for_its_readers(scripts, copy):
    scripts.addresses.fill(copy, scripts.release.STAND_INS)
    (copy / "docs").mkdir()
    (copy / "docs" / "install.md").touch()
    version = scripts.release.prepare(copy, "2026-12-24")
    text = scripts_readme(copy, version)
    start = f"https://example.org/anydml/repository/blob/v{version}"
    for path in re.findall(rf"\({re.escape(start)}/([^)#]+)", text):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).mkdir(exist_ok=True) if path.endswith("/") else (copy / path).touch()
    scripts.release.check_readme(sdist(copy, text, version), copy, version)
    for wrong, message in [
        (text.replace("pip install anydml", "pip install .", 1), "got `pip install .`"),
        (text + f"[here]({start}/docs/nothing.md)", r"got \['docs/nothing.md'\]"),
        (text + "[here](docs/install.md)", r"got \['docs/install.md'\]"),
        ("no links", "expected links"),
    ]:
        with pytest.raises(SystemExit, match=message):
            scripts.release.check_readme(sdist(copy, wrong, version), copy, version)
    with pytest.raises(SystemExit, match="expected version"):
        scripts.release.check_readme(sdist(copy, text, "0.0.9"), copy, version)


def test_a_release_needs_every_address(scripts, copy, monkeypatch, capsys):
    monkeypatch.setattr(scripts.release, "addresses", lambda: {"Repository": "https://example.org"})
    monkeypatch.setattr("sys.argv", ["release.py"])
    with pytest.raises(SystemExit, match="expected every address"):
        scripts.release.main()
    shown = capsys.readouterr().out
    assert re.findall(r"not set: (\w+)", shown) == ["Documentation", "Security", "Reports", "email"]


def test_the_site_has_the_addresses(scripts, monkeypatch):
    pytest.importorskip("igraph")
    from scripts.documentation import hook

    def configured(known):
        monkeypatch.setattr(hook, "addresses", lambda: known)
        config = SimpleNamespace(site_name="anydml", nav=[], site_url=None, repo_url=None)
        guide = (ROOT / "docs" / "guides" / "judge-directml.md").read_text()
        page = SimpleNamespace(file=SimpleNamespace(src_uri="guides/judge-directml.md"), meta={})
        return hook.on_config(config), hook.on_page_markdown(guide, page=page)

    config, guide = configured({})
    assert config.site_url is None
    assert config.repo_url is None
    assert "an address not yet set" in guide
    config, guide = configured(scripts.release.STAND_INS)
    assert config.site_url == "https://example.org/anydml/documentation/"
    assert config.repo_url == "https://example.org/anydml/repository"
    assert config.edit_uri == "edit/main/docs/"
    assert "https://example.org/anydml/reports" in guide
    assert "pyproject.toml" not in guide


@pytest.mark.skipif(not WORKFLOW.exists(), reason="an sdist has no .github")
def test_the_workflow_runs_nothing_that_changes_by_itself():
    text = WORKFLOW.read_text()
    used = re.findall(r"uses: (\S+)", text)
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)
    assert all(re.search(r"==\d", spec) for spec in re.findall(r"--spec (\S+)", text))


def test_wheels_are_built_for_the_pythons_that_are_tested():
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text())
    built = re.findall(r"cp(3)(\d+)-\*", configuration["tool"]["cibuildwheel"]["build"])
    classifiers = " ".join(configuration["project"]["classifiers"])
    assert built == re.findall(r"Python :: (3)\.(\d+)", classifiers)
