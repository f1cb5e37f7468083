"""What tells open pages of a change, on every kind of store that two processes can share."""

from __future__ import annotations

import asyncio

from store_worlds import World, every_world, started

from becket.parts.front.feed import Feed


async def nothing() -> None:
    pass


async def told_once_written(world: World) -> None:
    seen, other = world.open(), world.open()
    feed = Feed(seen, nothing, seen if world.kind == "postgres" else None)
    try:
        for _ in range(3):
            await feed.look()
        quiet = feed.version
        for _ in range(5):
            await feed.look()
        assert feed.version == quiet, "nobody wrote"
        await started(other, "run_1")
        assert await feed.look() > quiet
    finally:
        await seen.close()
        await other.close()


def writes_of_others_are_told_and_silence_is_not(world: World) -> None:
    asyncio.run(told_once_written(world))


test_open_pages = every_world(writes_of_others_are_told_and_silence_is_not, "sqlite", "postgres")
