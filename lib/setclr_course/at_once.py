"""JupyterLab's connection from the browser to a kernel, made for dragging: answers come at once, and a kernel
that is busy for a moment is no news. Nor does a page change by being opened.

A server that gathers small messages (Nagle's algorithm) holds each answer to a drag back until the browser
has confirmed the message before, which it does up to 40 ms late. And each time that JupyterLab hears that a
kernel is busy, and then that it is idle, it draws its toolbars anew and loads another favicon: twice in each
step of a drag. When it opens a page, JupyterLab writes into it what the kernel says of its language. Saved
pages have all of that but the version of Python, which is another on each machine, and so it is not told.
`make lab` names this class as the server's `kernel_websocket_connection_class`.
"""

from typing import Any

from jupyter_client.session import DELIM
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from tornado.ioloop import IOLoop

MOMENT = 0.1  # seconds


class AtOnce(ZMQChannelsWebsocketConnection):
    later: Any = None  # that the kernel is busy with a widget's message, which is not yet told

    def connect(self) -> Any:
        self.websocket_handler.set_nodelay(True)
        return super().connect()

    def disconnect(self) -> Any:
        self.forget()
        return super().disconnect()

    def handle_outgoing_message(self, stream: str, outgoing_msg: list[Any]) -> None:
        parts = self.session.feed_identities(outgoing_msg)[1][1:]
        header, parent = (self.session.unpack(part) for part in parts[:2])
        if header["msg_type"] == "status" and parent.get("msg_type") == "comm_msg":
            self.forget()
            if self.session.unpack(parts[3])["execution_state"] == "busy":
                tell = super().handle_outgoing_message
                self.later = IOLoop.current().call_later(MOMENT, tell, stream, outgoing_msg)
                return
        if header["msg_type"] == "kernel_info_reply":
            content = self.session.unpack(parts[3])
            content.get("language_info", {}).pop("version", None)
            parts[3] = self.session.pack(content)
            outgoing_msg = [DELIM, self.session.sign(parts), *parts]
        super().handle_outgoing_message(stream, outgoing_msg)

    def forget(self) -> None:
        if self.later is not None:
            IOLoop.current().remove_timeout(self.later)
            self.later = None
