"""What stands before several replicas: a real nginx where one can be had, else a plain TCP balancer of our own."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import cycle
from pathlib import Path

from tests.support import debian
from tests.support.ports import free_port

__all__ = ["balanced"]

READY_S = 20

_CONFIGURED = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
  access_log off;
  client_max_body_size 8m;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream deck {{
    {replicas}
    keepalive 32;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://deck;
      proxy_http_version 1.1;
      proxy_buffering off;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
    }}
  }}
}}
"""


@asynccontextmanager
async def balanced(ports: Sequence[int]) -> AsyncIterator[str]:
    """The address at which these ports of this machine are served in turn."""
    program = _nginx()
    if program is None:
        async with _plain(ports) as port:
            yield f"http://127.0.0.1:{port}"
        return
    folder = Path(tempfile.mkdtemp(prefix="quantdeck-nginx-"))
    port = free_port()
    replicas = " ".join(f"server 127.0.0.1:{one};" for one in ports)
    configured = folder / "nginx.conf"
    configured.write_text(_CONFIGURED.format(folder=folder, port=port, replicas=replicas))
    nothing = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        program, "-p", folder, "-e", folder / "errors", "-c", configured, stdin=nothing, stdout=nothing, stderr=nothing
    )
    try:
        await _listening(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        await process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _nginx() -> Path | None:
    if found := shutil.which("nginx"):
        return Path(found)
    place, _ = debian.unpacked("nginx")
    program = None if place is None else place / "usr" / "sbin" / "nginx"
    if program is None or subprocess.run([program, "-v"], capture_output=True, check=False).returncode:
        return None
    return program


async def _listening(port: int) -> None:
    async with asyncio.timeout(READY_S):
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                return
            await asyncio.sleep(0.005)


@asynccontextmanager
async def _plain(ports: Sequence[int]) -> AsyncIterator[int]:
    turns = cycle(ports)
    passing: set[asyncio.Task[None]] = set()

    async def passed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        passing.add(task)
        for _ in ports:
            with suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", next(turns))
                await asyncio.gather(_flow(reader, back), _flow(there, writer), return_exceptions=True)
                break
        writer.close()

    server = await asyncio.start_server(passed, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


async def _flow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
