"""What tests of sources share: a server, and the right to leave a test out only aloud."""

import os

import pytest

from engines.postgres_server import GUARDED, PASSWORD, programs, running_server
from engines.sas_writer import can_write


def left_out(reason: str) -> None:
    if os.environ.get("RECORDWISE_REQUIRE_ALL"):
        pytest.fail(f"{reason}, and RECORDWISE_REQUIRE_ALL is set")
    pytest.skip(f"LEFT OUT: {reason}")


@pytest.fixture(scope="session")
def server():
    """A server all tests share; tables have names of their own."""
    if programs() is None:
        left_out("PostgreSQL is not installed (initdb and postgres)")
    with running_server() as found:
        found.run(f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{PASSWORD}'", "CREATE SCHEMA agency")
        yield found


@pytest.fixture
def own_server():
    """A server a test may stop or kill."""
    if programs() is None:
        left_out("PostgreSQL is not installed (initdb and postgres)")
    with running_server() as found:
        yield found


@pytest.fixture(scope="session")
def sas7bdat():
    """The writer of SAS7BDAT files."""
    if not can_write():
        left_out("pyreadstat does not carry ReadStat's writer of SAS7BDAT here")
    from engines.sas_writer import write_sas7bdat

    return write_sas7bdat
