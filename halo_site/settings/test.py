"""The suite: a home of its own that is thrown away; ``HALO_TEST_DATABASE_URL`` moves it to PostgreSQL."""

from __future__ import annotations

import os
import tempfile

os.environ["HALO_HOME"] = tempfile.mkdtemp(prefix="halo-test-home-")
os.environ.pop("DATABASE_URL", None)

from halo_site.settings.web import *  # noqa: F403 - the environment has to be set first

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EVOLUTION_TICK_ON_COMMIT = False

if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":  # noqa: F405 - from the web settings
    # A file, as in life: in a shared in-memory database threads lock each other's tables at once, WAL or not.
    DATABASES["default"]["TEST"] = {"NAME": os.path.join(os.environ["HALO_HOME"], "test.sqlite3")}  # noqa: F405, PTH118
