"""The suite: a home of its own that is thrown away; ``HALO_TEST_DATABASE_URL`` moves it to PostgreSQL.

On SQLite the test database is a file, so that processes a test starts can open it as well.
"""

from __future__ import annotations

import os
import tempfile

os.environ["HALO_HOME"] = tempfile.mkdtemp(prefix="halo-test-home-")
os.environ["DATABASE_URL"] = os.environ.get("HALO_TEST_DATABASE_URL", "")

from halo_site.settings.web import *  # noqa: F403 - the environment has to be set first
from halo_site.settings.web import DATABASES, HOME

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EVOLUTION_TICK_ON_COMMIT = False
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"]["TEST"] = {"NAME": str(HOME.root / "test.sqlite3")}
    # Processes are killed here, machines are not.
    DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
