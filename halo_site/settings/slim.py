"""What every process needs: database, apps, time. Loads no admin, REST or web part.

What the environment may say stands in ``halo_site.env``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from core.paths import halo_home
from halo_site.env import read_database, read_redis
from halo_site.private_file import make_private
from halo_site.secret_key import read_or_create

PROJECT_ROOT = Path(__file__).resolve().parents[2]
HOME = halo_home()

DEBUG = False
SECRET_KEY = os.environ.get("SECRET_KEY") or read_or_create(HOME.secret_key_file)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "core.db",
    "workspaces",
    "sessions_app",
    "evolution",
    "halo_site",
]

if read_database() is None:
    make_private(HOME.database_file)
DATABASES = {
    "default": read_database() or {"ENGINE": "django.db.backends.sqlite3", "NAME": str(HOME.database_file)}
}

if DATABASES["default"]["ENGINE"] == "django.db.backends.postgresql":
    DATABASES["default"]["CONN_MAX_AGE"] = 60
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    # IMMEDIATE: a deferred transaction that turns into a writer loses to "database is locked".
    DATABASES["default"]["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 30,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en-us"
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.PBKDF2PasswordHasher"]
LOGGING_CONFIG = None

REDIS_URL = read_redis()
# Wrappers and commands push as well; without Redis the web process finds their events in the table.
CHANNEL_LAYERS: dict[str, dict[str, Any]] = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}

# The suite turns it off: a test decides itself when wrappers are started.
EVOLUTION_TICK_ON_COMMIT = True
