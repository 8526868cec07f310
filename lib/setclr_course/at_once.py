"""JupyterLab's connection from the browser to a kernel, without a wait for small messages.

A server that gathers small messages (Nagle's algorithm) holds each answer to a drag back until the browser
has confirmed the message before, which it does up to 40 ms late. `make lab` names this class as the server's
`kernel_websocket_connection_class`.
"""

from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection


class AtOnce(ZMQChannelsWebsocketConnection):
    def connect(self) -> Any:
        self.websocket_handler.set_nodelay(True)
        return super().connect()
