import os

from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from django.core.asgi import get_asgi_application
from django.urls import path, re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "halo_site.settings.web")

http = get_asgi_application()

from halo_site.background import lifespan  # noqa: E402 - they know rows, which exist once Django is set up
from halo_site.consumers import LiveConsumer  # noqa: E402

application = ProtocolTypeRouter(
    {
        "http": http,
        "lifespan": lifespan,
        "websocket": URLRouter(
            [path("ws/", LiveConsumer.as_asgi()), re_path(r"", WebsocketDenier.as_asgi())],
        ),
    }
)
