"""A PostgreSQL server of the tests' own: made in a temporary folder, reached by a socket there, gone afterwards."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PORT = 54321
OWNER, GUARDED, PASSWORD = "owner", "guarded", "pa55word-in-no-file"
ENTRY = f"local all {GUARDED} scram-sha-256\nlocal all all trust\n"
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "20",
    "log_statement": "none",
}


def programs() -> Path | None:
    """The folder of initdb and postgres, the newest there is."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    on_path = shutil.which("initdb")
    found += [Path(on_path).resolve().parent] if on_path else []
    usable = [folder for folder in found if (folder / "postgres").exists()]
    return max(usable, key=lambda folder: [int(part) for part in folder.parts if part.isdecimal()], default=None)


def _somebody() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return None
    known = {each.pw_name: each for each in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]


class Server:
    """Started and stopped at will; the data stays until ``remove``."""

    def __init__(self, folder: Path) -> None:
        self.folder, user = folder, _somebody()
        os.chmod(folder, 0o755)
        self._become: list[str] = []
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
            # As the user, Python copies its own process first, for which there is no memory where libraries reserved much.
            self._become = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        found = programs()
        assert found is not None
        self._programs = found
        self._process: subprocess.Popen[bytes] | None = None
        arguments = ["-D", str(folder / "data"), "-U", OWNER, "--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C"]
        self._run("initdb", *arguments)
        (folder / "data" / "pg_hba.conf").write_text(ENTRY)

    def _run(self, program: str, *arguments: str) -> None:
        command = [*self._become, str(self._programs / program), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder)

    def start(self) -> None:
        settings = [f"--{name}={value}" for name, value in SETTINGS.items()]
        command = [
            *self._become,
            str(self._programs / "postgres"),
            "-D",
            str(self.folder / "data"),
            "-k",
            str(self.folder),
            "-p",
            str(PORT),
        ]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command + settings, stdout=log, stderr=log, cwd=self.folder)
        deadline = time.monotonic() + 60
        while not self._answers():
            assert time.monotonic() < deadline, "the server did not start"
            assert self._process.poll() is None, (self.folder / "log").read_text()
            time.sleep(0.05)

    def _answers(self) -> bool:
        from adbc_driver_manager import Error

        try:
            with self.cursor():
                return True
        except Error:
            return False

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """SIGINT is a fast stop, SIGQUIT ends every session at once without a word."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
        self._process = None

    def uri(self, user: str = OWNER, database: str = "postgres", password: str | None = None) -> str:
        who = user if password is None else f"{user}:{password}"
        return f"postgresql://{who}@/{database}?host={self.folder}&port={PORT}"

    @contextmanager
    def cursor(self, database: str = "postgres") -> Iterator[Any]:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.uri(database=database), autocommit=True) as connection, connection.cursor() as cursor:
            yield cursor

    def run(self, *statements: str, database: str = "postgres") -> None:
        with self.cursor(database) as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def ingest(self, name: str, table: Any) -> None:
        """A new table with the columns of an Arrow table."""
        with self.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="create")


@contextmanager
def running_server() -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="rw-pg-"))
    try:
        server = Server(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
