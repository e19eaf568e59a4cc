"""The project: settings, urls, ASGI, the command line, and the supervisor behind ``halo up``."""
