"""The fault proxy in front of MariaDB: it follows the protocol and cuts a connection around one statement."""

import asyncio
import struct

from faults.proxy import Connection, Proxy

QUERY, PREPARE, EXECUTE = 0x03, 0x16, 0x17


class MariaProxy(Proxy):
    """Listens on a loopback port and forwards to a MariaDB server."""

    def __init__(self, upstream):
        super().__init__(upstream)
        self.follows = True

    def make(self, down):
        """What carries a connection that was accepted."""
        return MariaConnection(self, down)


class MariaConnection(Connection):
    """One connection. A session sends nothing before it has the whole answer to what it sent, so the first bytes of an
    answer say that the statement was done."""

    def __init__(self, proxy, down):
        super().__init__(proxy, down)
        self.sent = Commands()

    async def _upwards(self, data, sink):
        for raw, statement in self.sent.feed(data):
            if statement is not None and self.armed is None:
                cut = next((cut for cut in self.proxy.cuts if cut.matches(statement)), None)
                if cut is not None and cut.at == "hold":
                    cut.count()
                    while not cut.released.is_set():
                        await asyncio.sleep(0.005)
                elif cut is not None and cut.at == "before":
                    cut.count()
                    raise ConnectionResetError
                elif cut is not None:
                    self.armed = cut
            await self.proxy.loop.sock_sendall(sink, raw)

    async def _downwards(self, data, sink):
        self.sent.answered(data)
        if self.armed is not None:
            if self.armed.at == "half":
                await self.proxy.loop.sock_sendall(sink, data[: len(data) // 2])
            self.armed.count()
            raise ConnectionResetError
        await self.proxy.loop.sock_sendall(sink, data)


class Commands:
    """Cuts what a client sends into packets and names the statement of each command."""

    def __init__(self):
        self.buffer, self.texts, self.preparing = bytearray(), {}, None

    def feed(self, data):
        """Whole packets as (bytes, text of the statement that is sent, prepared or executed, or None)."""
        self.buffer += data
        while len(self.buffer) >= 4:
            length = int.from_bytes(self.buffer[:3], "little") + 4
            if len(self.buffer) < length:
                return
            raw = bytes(self.buffer[:length])
            del self.buffer[:length]
            yield raw, self._statement(raw)

    def _statement(self, raw):
        number, body = raw[3], raw[5:]
        if number != 0 or len(raw) < 5:
            return None  # the handshake
        if raw[4] == QUERY:
            return body.decode(errors="replace")
        if raw[4] == PREPARE:
            self.preparing = body.decode(errors="replace")
            return self.preparing
        if raw[4] == EXECUTE:
            return self.texts.get(struct.unpack_from("<I", body)[0])
        return None

    def answered(self, data):
        """Learns the number that the server gave to what was prepared."""
        if self.preparing is not None and len(data) >= 9 and data[4] == 0:
            self.texts[struct.unpack_from("<I", data, 5)[0]] = self.preparing
        self.preparing = None
