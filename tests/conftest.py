"""What wire tests and fault tests share."""

import os
from pathlib import Path

import pytest



def needed(name):
    """An environment variable that `./test` sets."""
    value = os.environ.get(name)
    if not value:
        pytest.exit(f"{name} is not set: run these tests by ./test wire or ./test faults", returncode=2)
    return value


@pytest.fixture(scope="session")
def postgres_bin():
    """Programs of the PostgreSQL under test."""
    return Path(needed("LEASEHOLD_TEST_POSTGRES_BIN"))


@pytest.fixture(scope="session")
def server():
    """The PostgreSQL that `./test` started, as (URL, path of its log)."""
    return needed("LEASEHOLD_TEST_POSTGRES_URL"), Path(needed("LEASEHOLD_TEST_POSTGRES_LOG"))
