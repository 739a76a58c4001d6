"""Random descriptors, contents, layouts and bindings, from several threads, for minutes."""

import os
import random
import threading
import time

import pytest

from fuzz.targets import descriptor


@pytest.mark.soak
def test_soak():
    seconds = float(os.environ.get("ANYDML_SOAK_SECONDS", "120"))
    seed = int(os.environ.get("ANYDML_SOAK_SEED", time.time()))
    end = time.monotonic() + seconds
    runs, failures = [0] * 3, []

    def work(number):
        generator = random.Random(f"{seed} {number}")
        while time.monotonic() < end and not failures:
            data = generator.randbytes(generator.choice((40, 120, 240, 1000)))
            try:
                descriptor.run(data)
            except BaseException as error:
                error.add_note(f"seed {seed}, thread {number}, input {data.hex()}")
                failures.append(error)
            runs[number] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(runs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    assert all(runs)
