"""Connections to Pyth: with TLS and without, kept, lost, packed."""

from __future__ import annotations

import asyncio
import gzip
import ssl
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import httpcore2
import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from quantdeck.connections.http_streams import Sockets
from quantdeck.connections.pyth import PythApi
from quantdeck.core.errors import QueryFailed, Unreachable
from quantdeck.settings import Pyth
from tests.support.http_stub import HttpStub
from tests.support.pyth_stub import KEY


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    """A file with a certificate of this machine, which nobody else vouches for, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "loopback")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = tmp_path_factory.mktemp("tls") / "identity.pem"
    file.write_bytes(made.public_bytes(pem) + secret)
    return file


@asynccontextmanager
async def by_tls(identity):
    """A server that says what it was asked, behind TLS. Its port."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(identity)
    served = []

    async def serve(reader, writer):
        served.append(writer)
        while head := (await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""):
            body = head.split(b"\r\n")[0]
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body))
            await writer.drain()

    server = await asyncio.start_server(_ending_well(serve), "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
    for writer in served:
        writer.transport.abort()
    await asyncio.sleep(0)


def _ending_well(serve):
    async def served(reader, writer):
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.transport.abort()

    return served


async def test_who_proves_its_name_is_spoken_to_by_tls(identity):
    async with by_tls(identity) as port:
        context = ssl.create_default_context(cafile=str(identity))
        async with httpcore2.AsyncConnectionPool(ssl_context=context, network_backend=Sockets()) as pool:
            for _ in range(2):
                answer = await pool.request("GET", f"https://127.0.0.1:{port}/x", headers=[(b"host", b"127.0.0.1")])
                assert (answer.status, answer.content) == (200, b"GET /x HTTP/1.1")
            assert len(pool.connections) == 1


async def test_who_does_not_is_sent_nothing(identity):
    async with by_tls(identity) as port:
        url = f"https://127.0.0.1:{port}"
        api = PythApi(Pyth(router_url=url, history_url=url, retry_s=0))
        with pytest.raises(Unreachable, match="No connection") as failed:
            await api.router("v1/latest_price", {}, token=KEY)
        assert "SSLCertVerificationError" in repr(failed.value.__cause__)
        await api.close()


@asynccontextmanager
async def talking(answer, **said):
    async with HttpStub(answer).serving() as stub:
        api = PythApi(Pyth(router_url=stub.url, history_url=f"{stub.url}/", retry_s=0, **said))
        try:
            yield api, stub
        finally:
            await api.close()


async def test_a_kept_connection_that_the_service_has_closed_costs_nothing():
    async def answer(_):
        return 200, b"[]", {"connection": "close"}

    async with talking(answer) as (api, stub):
        for _ in range(3):
            assert await api.history("symbols", token=None) == []
            await stub.all_left()
        assert len(stub.heard) == 3


@pytest.mark.parametrize("later", [b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 2\r\n\r\n{}", b""])
async def test_what_was_said_to_a_resting_connection_answers_no_question(later):
    """A proxy says 408 to who asks nothing for a while, and hangs up."""
    asked = 0

    async def serve(reader, writer):
        nonlocal asked
        await reader.readuntil(b"\r\n\r\n")
        asked += 1
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n%d" % asked)
        await writer.drain()
        await answered.wait()
        writer.write(later)

    answered = asyncio.Event()
    server = await asyncio.start_server(_ending_well(serve), "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        api = PythApi(Pyth(router_url=url, history_url=url, retry_s=0))
        assert await api.history("symbols", token=None) == 1
        answered.set()
        assert api._pool is not None
        (kept,) = api._pool.connections
        while not kept.has_expired():  # noqa: ASYNC110 - nobody is told; a call is what looks
            await asyncio.sleep(0.001)
        assert await api.history("symbols", token=None) == 2
        await api.close()


async def test_a_long_answer_waits_where_it_is_until_it_is_read():
    body = orjson.dumps(["x" * 100] * 100_000)

    async def answer(_):
        return 200, body

    async with talking(answer) as (api, _):
        assert len(await api.history("symbols", token=None)) == 100_000


async def test_head_and_body_arrive_whole_however_long():
    body = {"priceFeedIds": list(range(200_000))}

    async def answer(request):
        return 200, orjson.dumps(orjson.loads(request.body) == body)

    async with talking(answer) as (api, stub):
        assert await api.router("v1/latest_price", body, token=KEY) is True
        headers = stub.heard[0].headers
        assert headers["host"] == stub.url.removeprefix("http://")
        assert (headers["content-type"], headers["accept-encoding"]) == ("application/json", "gzip")


async def test_what_is_asked_keeps_its_signs():
    async def answer(request):
        return 200, orjson.dumps([request.path, request.query])

    async with talking(answer) as (api, _):
        told = await api.history("fixed_rate@200ms/history", [("symbol", "FX.USD&X/É ?#")], token=None)
        assert told == ["/v1/fixed_rate@200ms/history", {"symbol": "FX.USD&X/É ?#"}]


PACKED = {"content-encoding": "gzip"}


@pytest.mark.parametrize("headers", [PACKED, {"Content-Encoding": "GZIP"}])
async def test_a_packed_answer_is_unpacked(headers):
    async def answer(_):
        return 200, gzip.compress(b'{"a": 1}'), headers

    async with talking(answer) as (api, _):
        assert await api.history("symbols", token=None) == {"a": 1}


async def test_an_answer_that_unpacks_to_too_much_is_not_unpacked_to_its_end():
    async def answer(_):
        return 200, gzip.compress(b" " * 5_000_000 + b"1"), PACKED

    async with talking(answer, max_answer_mb=1) as (api, _):
        with pytest.raises(QueryFailed, match="too large"):
            await api.history("symbols", token=None)


@pytest.mark.parametrize("body", [b"no gzip at all", gzip.compress(b"[1]" * 999, mtime=0)[:30]],
                         ids=["other", "cut off"])  # fmt: skip
async def test_an_answer_that_cannot_be_unpacked_is_a_failure_of_the_service(body):
    async def answer(_):
        return 200, body, PACKED

    async with talking(answer) as (api, _):
        with pytest.raises(Unreachable):
            await api.history("symbols", token=None)


async def test_who_stops_waiting_leaves_no_connection_behind():
    arrived, gate = asyncio.Event(), asyncio.Event()

    async def answer(request):
        if request.path.endswith("slow"):
            arrived.set()
            await gate.wait()
        return 200, b"[]"

    async with talking(answer, connections=1) as (api, _):
        waiting = asyncio.ensure_future(api.history("slow", token=None))
        await arrived.wait()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert await api.history("symbols", token=None) == []
        gate.set()


def test_an_address_of_other_letters_is_spelt_in_those_of_the_wire():
    api = PythApi(Pyth(router_url="https://pyth.exämple/sub/", history_url="https://pyth.exämple/v1/"))
    assert (api._router, api._history) == ("https://pyth.xn--exmple-cua/sub", "https://pyth.xn--exmple-cua/v1")
