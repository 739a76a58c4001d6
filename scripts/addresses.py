"""Print the project's addresses, and which of them are not set: `python scripts/addresses.py`.

They are set in `pyproject.toml` only: `[project.urls]`, and the address of the first of `authors`.
The site, the links of the README on PyPI and the metadata of the package are derived from them.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEEDED = {
    "Repository": "the page of the repository on GitHub",
    "Documentation": "the site",
    "Security": "where vulnerabilities are reported privately",
    "Reports": "where reports of conformance go",
    "email": "the authors' address of mail",
}


def addresses(root: Path = ROOT) -> dict[str, str]:
    """The addresses that are set, by name; URLs end without a slash."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {name: url.rstrip("/") for name, url in project.get("urls", {}).items()}
    for name, url in found.items():
        if name not in NEEDED:
            raise SystemExit(f"project.urls: expected names of {', '.join(NEEDED)}, got {name}")
        if not re.fullmatch(r"https://[^/\s]+\S*", url):
            raise SystemExit(f"project.urls.{name}: expected an https address, got {url!r}")
    email = project["authors"][0].get("email")
    return found | ({"email": email} if email else {})


def fill(root: Path, values: dict[str, str]) -> None:
    """Write addresses that are not set into `pyproject.toml`."""
    path = root / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    urls = "".join(f'{name} = "{url}"\n' for name, url in values.items() if name != "email")
    text = text.replace("[project.urls]\n", f"[project.urls]\n{urls}", 1)
    if "email" in values:
        text = re.sub(r"^(authors = \[\{ name = \"[^\"]+\")", rf'\1, email = "{values["email"]}"',
                      text, count=1, flags=re.MULTILINE)  # fmt: skip
    path.write_text(text, encoding="utf-8")
    missing = values.keys() - addresses(root).keys()
    if missing:
        raise SystemExit(f"pyproject.toml: expected places for {', '.join(sorted(missing))}")


def main() -> None:
    """The command line."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    found = addresses()
    for name, meaning in NEEDED.items():
        print(f"{name}: {found.get(name, f'not set ({meaning})')}")


if __name__ == "__main__":
    main()
