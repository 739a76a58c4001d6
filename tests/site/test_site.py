"""The documentation in headless Chromium, on a desktop and on a phone.

A page of the test's own (`probe.html`) loads every page of the site into a frame of a phone's and
of a desktop's width, looks at it there, and sends what it saw to the server that the site comes
from.
"""

import functools
import http.server
import json
import queue
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
WIDTHS = (390, 1280)
SEARCHES = {  # what somebody looks for, and a page that one of the first results leads to
    "nms": "",
    "histogram": "guides/group-by/",
    "argpartition": "names/",
    "argsort": "names/",
    "groupby": "guides/group-by/",
    "80070057": "guides/e-invalidarg/",
    "convolution": "operators/convolution/",
}
FILTERS = {  # in the list of operators, and what stays
    "torch.topk": {"TOP_K1"},
    "gather nd1": {"GATHER_ND1"},
    "no such operator": set(),
}
SECONDS = 600

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
]


class Handler(http.server.SimpleHTTPRequestHandler):
    """The built site, with a script in front of each page's own that records errors."""

    reports = queue.Queue()

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if self.path == "/probe":
            text = (Path(__file__).parent / "probe.html").read_text()
        elif path.suffix == ".html" and path.exists():
            recorder = (Path(__file__).parent / "recorder.js").read_text()
            text = path.read_text().replace("<head>", f"<head><script>{recorder}</script>", 1)
        else:
            super().do_GET()
            return
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the built site."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def seen(site, tmp_path_factory):
    """What Chromium saw: of each page and width, and of each search."""
    pages = [f"/{path.parent.relative_to(site)}/" for path in sorted(site.rglob("index.html"))]
    pages = ["/404.html", *(page.replace("/./", "/") for page in pages)]
    handler = functools.partial(Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        task = {"pages": pages, "widths": WIDTHS, "searches": [*SEARCHES], "filters": [*FILTERS]}
        task = json.dumps(task)
        (site / "task.json").write_text(task)
        profile = tmp_path_factory.mktemp("profile")
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update",
                   "--disable-dev-shm-usage", "--disable-quic", "--disable-sync",
                   f"--user-data-dir={profile}", "--window-size=1400,1000",
                   "--remote-debugging-port=0",  # or headless Chromium ends at once
                   f"http://127.0.0.1:{server.server_port}/probe"]  # fmt: skip
        browser = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            report = Handler.reports.get(timeout=SECONDS)
        except queue.Empty:
            pytest.fail(f"Chromium has not looked at {len(pages)} pages in {SECONDS} seconds")
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
    assert len(report["pages"]) == len(pages) * len(WIDTHS)
    return report


def check_each(seen, what):
    """Fail with a line for each problem of a page."""
    lines = [
        f"{page['url']} at {page['width']} px: {problem}"
        for page in seen["pages"]
        for problem in page[what]
    ]
    assert not lines, "\n".join(lines)


def test_nothing_is_off_screen_or_clipped(seen):
    check_each(seen, "hidden")


def test_identifiers_in_tables_are_in_one_piece(seen):
    check_each(seen, "broken")


def test_blocks_copy_their_input_only(seen):
    check_each(seen, "copies")


def test_output_has_contrast_in_light_and_dark(seen):
    check_each(seen, "pale")


def test_no_script_fails_and_no_picture_is_missing(seen):
    check_each(seen, "errors")


def test_links_lead_to_pages_and_places(seen, site):
    ids = {page["url"]: set(page["ids"]) for page in seen["pages"]}
    wrong = set()
    for page in seen["pages"]:
        for link in page["links"]:
            target = urlsplit(link)
            path, anchor = unquote(target.path), unquote(target.fragment)
            if path not in ids:
                found = (site / path.lstrip("/")).is_file()
            else:
                found = not anchor or anchor in ids[path]
            if not found:
                wrong.add(f"{page['url']}: {link}")
    assert not wrong, "\n".join(sorted(wrong))


@pytest.mark.parametrize("word", SEARCHES)
def test_search_finds(seen, word):
    results = [urlsplit(link).path for link in seen["searches"][word]]
    assert f"/{SEARCHES[word]}" in results[:5], results


def test_the_list_of_operators_has_a_filter(seen):
    for filtered in seen["filters"]:  # at each width
        assert len(filtered["found"].pop("")) == filtered["all"] > 150
        assert {text: {*names} for text, names in filtered["found"].items()} == FILTERS


def test_titles_of_pages_differ(site):
    titles = [
        re.search("<title>(.*?)</title>", path.read_text())[1] for path in site.rglob("index.html")
    ]
    assert len({*titles}) == len(titles) > 50
