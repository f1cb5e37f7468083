"""Bytes between two connections, both ways, until both sides have said all; never more held than a buffer."""

from __future__ import annotations

import asyncio
import contextlib
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from becket.kernel.process.resolve import Streams

_CHUNK = 65_536


async def relay(one: Streams, other: Streams) -> None:
    """Returns when both directions have ended, or either side is lost."""
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_pump(one[0], other[1]))
            both.create_task(_pump(other[0], one[1]))
    except* OSError:
        pass


async def _pump(reader: StreamReader, writer: StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


@asynccontextmanager
async def parting(writer: StreamWriter) -> AsyncIterator[None]:
    """Let go of a connection after the block: once it has taken what was written, or at once if the block failed.

    A cancellation is such a failure, also while the last bytes leave: a side that does not read holds up nobody.
    """
    try:
        yield
        writer.close()
        await _closed(writer)
    except BaseException:
        writer.transport.abort()
        await _closed(writer)
        raise


async def _closed(writer: StreamWriter) -> None:
    with contextlib.suppress(OSError):
        await writer.wait_closed()
