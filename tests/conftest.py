"""Fixtures for every folder: the engines, by one parameter."""

import pytest

import small_release
from engine_choice import Choice, local_spark


@pytest.fixture(scope="session")
def spark_session():
    """One Spark for the whole test process, started when a test first asks for it."""
    session = local_spark()
    yield session
    session.stop()


@pytest.fixture(scope="session", params=["duckdb", "spark"])
def opens(request):
    """Opens a table: ``opens(source, schema)``. What is asked of it must have one answer."""
    spark = request.getfixturevalue("spark_session") if request.param == "spark" else None
    return Choice(request.param, spark)


@pytest.fixture
def on_both_engines(opens, monkeypatch):
    """``small_release.session`` opens its tables on each engine in turn."""
    monkeypatch.setattr(small_release, "HOW", opens.session_options())
