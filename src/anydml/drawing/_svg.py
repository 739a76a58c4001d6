"""SVG text: colours for light and dark pages, escaped labels, one document."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Final

# What inline pictures follow besides the system: the dark themes of the documentation's site,
# JupyterLab and Visual Studio Code.
_DARK_PAGES: Final = ":is([data-md-color-scheme=slate],[data-jp-theme-light=false],.vscode-dark) "
# By class: the properties, with the colours of a light and of a dark page.
_RULES: Final = {
    "paper": ("fill:{}", "#ffffff", "#161b22"),
    "ink": ("fill:{}", "#1f2328", "#e9edf2"),
    "muted": ("fill:{}", "#59636e", "#9aa4af"),
    "halo": ("stroke:{};stroke-width:3;paint-order:stroke", "#ffffff", "#161b22"),
    "line": ("fill:none;stroke:{}", "#59636e", "#9aa4af"),
    "tip": ("fill:{}", "#59636e", "#9aa4af"),
    "cell": ("stroke:{};stroke-width:1", "#8c959f", "#656d76"),
    "k0": ("fill:{}", "#f6f8fa", "#21262d"),
    "k1": ("fill:{}", "#a9d3f5", "#1f5f8b"),
    "k2": ("fill:{}", "#ffc98f", "#955510"),
    "k3": ("fill:{}", "#abe0b5", "#28703f"),
    "k4": ("fill:{}", "#f8bbd9", "#983c70"),
    "k5": ("fill:{}", "#fbe67b", "#756400"),
    "k6": ("fill:{}", "#d5c0ee", "#694b93"),
    "k7": ("fill:{}", "#97dcd3", "#1a6f68"),
    "k8": ("fill:{}", "#ffaea6", "#9a3838"),
    "k9": ("fill:{}", "#d4e890", "#4f6c18"),
    "k10": ("fill:{}", "#dcc6a8", "#745636"),
    "grid": ("stroke:{}", "#d8dee4", "#373e47"),
    "mark": ("fill:none;stroke:{};stroke-width:1.3", "#1f2328", "#e9edf2"),
    "ours": ("fill:{}", "#0969da", "#58a6ff"),
    "node": ("stroke:{};stroke-width:1.2", "#59636e", "#9aa4af"),
    "bad": ("fill:{}", "#ffd7d5", "#67060c"),
    "alarm": ("fill:{}", "#b3261e", "#ff9a92"),
}  # fmt: skip
COLOURS: Final = 10
"""Classes ``k1`` to ``k10`` have different colours; ``k0`` is neutral."""

_INVALID: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text(value: object) -> str:
    """Any text as XML: escaped, and without the characters that XML does not allow."""
    return escape(_INVALID.sub("\ufffd", str(value)))


def shortened(value: object, length: int) -> str:
    """At most this many characters of a text, on one line."""
    line = " ".join(str(value)[: 4 * length].split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def document(width: float, height: float, title: str, description: str, body: str) -> str:
    """A picture that can be shown alone, as an image, or inline in a page.

    Parameters
    ----------
    width, height : float
        In pixels; narrower pages show it smaller.
    title, description : str
        What it shows, for those who do not see it.
    body : str
        Elements, whose texts have been escaped.
    """
    used = set(re.findall(r"[\w-]+", " ".join(re.findall(r'class="([^"]+)"', body)))) | {"paper"}
    rules = {name: rule for name, rule in _RULES.items() if name in used}
    light = _css("", ((name, pattern, day) for name, (pattern, day, _) in rules.items()))
    dark = [(name, pattern, night) for name, (pattern, _, night) in rules.items()]
    size = f"{width:g}", f"{height:g}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="anydml" role="img" width="{size[0]}" '
        f'height="{size[1]}" viewBox="0 0 {size[0]} {size[1]}" aria-label="{text(title)}">'
        f"<title>{text(title)}</title><desc>{text(description)}</desc>"
        "<style>.anydml{max-width:100%;height:auto}"
        ".anydml text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',"
        f"monospace}}{light}@media (prefers-color-scheme:dark){{{_css('', dark)}}}"
        f"{_css(_DARK_PAGES, dark)}</style>"
        f'<rect class="paper" width="{size[0]}" height="{size[1]}" rx="6"/>{body}</svg>\n'
    )


def _css(page: str, rules: Iterable[tuple[str, str, str]]) -> str:
    return "".join(
        f"{page}.anydml .{name}{{{pattern.format(colour)}}}" for name, pattern, colour in rules
    )
