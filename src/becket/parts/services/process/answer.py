"""One question to a service: GET, and the status line. Nothing of the answer's text is believed."""

from __future__ import annotations

import asyncio
import contextlib

_LONGEST_LINE = 4096


async def problem(port: int, url: str, within: float) -> str:
    """What is wrong with the service's answer; empty for 2xx."""
    try:
        async with asyncio.timeout(within):
            status = await _status(port, url)
    except TimeoutError:
        return f"no answer to GET {url} within {within:g} s"
    except (OSError, ValueError, asyncio.IncompleteReadError) as error:
        return f"GET {url}: {error or type(error).__name__}"
    return "" if 200 <= status < 300 else f"GET {url} answered {status}"


async def _status(port: int, url: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=_LONGEST_LINE)
    try:
        head = f"GET {url} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUser-Agent: becket\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        await writer.drain()
        words = (await reader.readline()).split()
        if len(words) < 2 or not words[0].startswith(b"HTTP/") or not words[1].isdigit():
            raise ValueError("the answer is not HTTP")
        return int(words[1])
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
