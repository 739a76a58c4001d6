"""The lists of operators, functions and words that are in the repository are up to date."""

import pytest

from scripts import write_lists

WRITTEN = {**write_lists.modules(), **write_lists.documents()}


@pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)
def test_a_list_is_up_to_date(path):
    assert path.read_text(encoding="utf-8") == WRITTEN[path], "run scripts/write_lists.py"
