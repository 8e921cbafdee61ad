"""A TCP proxy that makes faults, steered by the test that owns it.

It runs in a thread of its own. Faults of the link hold for all connections, the open ones too, until the next order:
pass, delay, throttle, stall, drop one or both directions, silence. FIN, RST and refusing are acts of the moment.

In front of PostgreSQL it can also follow the protocol and cut a connection around one statement (see `Cut`): before the
statement goes out, after the server answered, or in the middle of the answer. It knows prepared statements by their
text, so a cut hits the second use of one as well as the first.
"""

import asyncio
import random
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
CHUNK = 65536


@dataclass
class Cut:
    """A cut around a statement whose text contains `text` (compared without regard to case).

    at = "before": the statement never leaves; "after": the server answered and nothing of it came back;
    "half": the first half of the answer came back; "hold": the statement waits for `release` and then goes on.
    """

    text: str
    at: str
    times: int = 1
    # So many such statements pass before it.
    skip: int = 0
    hits: int = 0
    hit: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def matches(self, statement):
        """Whether this cut is for `statement`, its turn has come, and it is not used up."""
        if self.hits >= self.times or self.text.lower() not in statement.lower():
            return False
        self.skip -= 1
        return self.skip < 0

    def count(self):
        """Notes a hit."""
        self.hits += 1
        self.hit.set()

    def release(self):
        """Lets a held statement go on."""
        self.released.set()


@dataclass
class Link:
    """How bytes travel just now."""

    delay: float = 0.0
    jitter: float = 0.0
    bytes_per_second: float = 0.0
    stalled: bool = False
    drop_up: bool = False
    drop_down: bool = False
    silent: bool = False


class Proxy:
    """Listens on a loopback port and forwards to `upstream` (host, port)."""

    def __init__(self, upstream, postgres=False, seed=1):
        self.upstream, self.follows = upstream, postgres
        self.link, self.cuts, self.actions = Link(), [], []
        self.random = random.Random(seed)
        self.connections = set()
        self.accepted = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.listener, self.accepting = None, None
        self.port = 0
        self.thread.start()
        self._call(self._listen())

    # --- orders ---------------------------------------------------------------------------------------------------

    def order(self, **link):
        """From now on bytes travel as `link` says; without arguments they pass."""
        self._note("order", link)
        self._call(self._set(Link(**link)))

    def heal(self):
        """Bytes pass; a refused port is open again."""
        self.order()
        if self.listener is None:
            self._call(self._listen())

    def finish(self):
        """Ends every connection politely (FIN)."""
        self._note("finish", {})
        self._call(self._end_all(reset=False))

    def reset(self):
        """Ends every connection by RST."""
        self._note("reset", {})
        self._call(self._end_all(reset=True))

    def refuse(self):
        """Stops listening and resets what is open."""
        self._note("refuse", {})
        self._call(self._unlisten())
        self._call(self._end_all(reset=True))

    def cut(self, text, at, times=1, skip=0):
        """Arms a cut; see `Cut`."""
        assert self.follows and at in ("before", "after", "half", "hold"), at
        cut = Cut(text, at, times, skip)
        self._note("cut", {"text": text, "at": at})
        self.cuts.append(cut)
        return cut

    def disarm(self):
        """Forgets every cut; statements that are held go on."""
        for cut in self.cuts:
            cut.release()
        self.cuts.clear()

    def close(self):
        """Ends the proxy."""
        self.disarm()
        self._call(self._unlisten())
        self._call(self._end_all(reset=True))
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)

    # --- inside ---------------------------------------------------------------------------------------------------

    def _note(self, act, detail):
        self.actions.append((time.monotonic(), act, detail))

    def _run(self):
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def _call(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(20)

    async def _set(self, link):
        self.link = link

    async def _listen(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(256)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        self.listener = listener
        self.accepting = self.loop.create_task(self._accept(listener))

    async def _unlisten(self):
        if self.accepting is not None:
            self.accepting.cancel()
            await asyncio.gather(self.accepting, return_exceptions=True)
            self.listener.close()
            self.listener, self.accepting = None, None

    async def _accept(self, listener):
        while True:
            down, _ = await self.loop.sock_accept(listener)
            down.setblocking(False)
            self.accepted += 1
            connection = self.make(down)
            self.connections.add(connection)
            connection.task = self.loop.create_task(connection.run())

    def make(self, down):
        """What carries a connection that was accepted."""
        return Connection(self, down)

    async def _end_all(self, reset):
        for connection in list(self.connections):
            connection.end(reset)
        await asyncio.gather(*(c.task for c in list(self.connections) if c.task), return_exceptions=True)


class Connection:
    """One connection through the proxy."""

    def __init__(self, proxy, down):
        self.proxy, self.down, self.up = proxy, down, None
        self.task, self.pumps, self.by_reset = None, [], True
        self.sent, self.held_back = Statements(), bytearray()
        # Answers end with ReadyForQuery; they are counted to know which one belongs to the statement being cut.
        self.asked, self.answered = 0, 0
        self.armed, self.armed_at, self.armed_answer = None, 0, bytearray()

    async def run(self):
        proxy, loop = self.proxy, self.proxy.loop
        try:
            if proxy.link.silent:
                await loop.create_future()
            self.up = socket.socket()
            self.up.setblocking(False)
            self.up.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.down.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await loop.sock_connect(self.up, proxy.upstream)
            self.pumps = [loop.create_task(self._pump(self.down, self.up, True)),
                          loop.create_task(self._pump(self.up, self.down, False))]
            await asyncio.wait(self.pumps, return_when=asyncio.FIRST_EXCEPTION)
        except (OSError, asyncio.CancelledError):
            pass  # the other side of a fault: its end is what was asked for
        finally:
            for pump in self.pumps:
                pump.cancel()
            await asyncio.gather(*self.pumps, return_exceptions=True)
            self.close()
            proxy.connections.discard(self)

    def end(self, reset):
        """Ends it from outside, by RST or by FIN."""
        self.by_reset = reset
        self.task.cancel()

    def close(self):
        """Closes both sockets."""
        for side in (self.down, self.up):
            if side is None:
                continue
            if self.by_reset:
                side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            side.close()

    async def _pump(self, source, sink, upwards):
        proxy, loop = self.proxy, self.proxy.loop
        while True:
            while proxy.link.stalled:
                await asyncio.sleep(0.01)
            data = await loop.sock_recv(source, CHUNK)
            if not data:
                sink.shutdown(socket.SHUT_WR)
                return
            while proxy.link.stalled:
                await asyncio.sleep(0.01)
            link = proxy.link
            if link.drop_up if upwards else link.drop_down:
                continue
            if link.delay or link.jitter:
                await asyncio.sleep(max(0.0, link.delay + proxy.random.uniform(-link.jitter, link.jitter)))
            if link.bytes_per_second:
                await asyncio.sleep(len(data) / link.bytes_per_second)
            if proxy.follows:
                await (self._upwards if upwards else self._downwards)(data, sink)
            else:
                await loop.sock_sendall(sink, data)

    async def _upwards(self, data, sink):
        for raw, kind, statement in self.sent.feed(data):
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
                    self.armed, self.armed_at = cut, self.asked + 1
            if kind in ("startup", "Q", "S"):
                self.asked += 1
            await self.proxy.loop.sock_sendall(sink, raw)

    async def _downwards(self, data, sink):
        if self.sent.one_byte_answers:
            self.sent.one_byte_answers -= 1
            await self.proxy.loop.sock_sendall(sink, data)
            return
        self.held_back += data
        ready = bytearray()
        while len(self.held_back) >= 5:
            length = 1 + struct.unpack_from("!I", self.held_back, 1)[0]
            if len(self.held_back) < length:
                break
            message = self.held_back[:length]
            del self.held_back[:length]
            theirs = self.armed is not None and self.answered + 1 == self.armed_at
            if theirs:
                self.armed_answer += message
            else:
                ready += message
            if message[:1] == b"Z":
                self.answered += 1
                if theirs:
                    await self._cut_answer(ready, sink)
        if ready:
            await self.proxy.loop.sock_sendall(sink, ready)

    async def _cut_answer(self, before, sink):
        cut, answer = self.armed, self.armed_answer
        if before:
            await self.proxy.loop.sock_sendall(sink, before)
        if cut.at == "half":
            await self.proxy.loop.sock_sendall(sink, answer[: len(answer) // 2])
        cut.count()
        raise ConnectionResetError


class Statements:
    """Follows what a client sends to PostgreSQL: cuts the stream into messages and names the statement of each."""

    def __init__(self):
        self.buffer, self.started = bytearray(), False
        self.texts = {}
        self.one_byte_answers = 0

    def feed(self, data):
        """Whole messages as (bytes, kind, text of the statement that it sets going or None)."""
        self.buffer += data
        while True:
            header = 4 if not self.started else 5
            if len(self.buffer) < header:
                return
            length = struct.unpack_from("!I", self.buffer, header - 4)[0] + header - 4
            if len(self.buffer) < length:
                return
            raw = bytes(self.buffer[:length])
            del self.buffer[:length]
            yield (raw, *self._read(raw))

    def _read(self, raw):
        if not self.started:
            code = struct.unpack_from("!I", raw, 4)[0]
            if code in (SSL_REQUEST, GSS_REQUEST):
                self.one_byte_answers += 1
                return "negotiation", None
            self.started = True
            return "startup", None
        kind, body = chr(raw[0]), raw[5:]
        if kind == "Q":
            return kind, body[:-1].decode(errors="replace")
        if kind == "P":
            name, text = body.split(b"\0", 2)[:2]
            self.texts[name] = text.decode(errors="replace")
        if kind == "B":
            return kind, self.texts.get(body.split(b"\0", 2)[1], "")
        return kind, None
