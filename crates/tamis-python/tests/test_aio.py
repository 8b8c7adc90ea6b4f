"""Filters in Redis, from asyncio."""

import asyncio
import os

import pytest

import tamis


def run(main):
    return asyncio.run(asyncio.wait_for(main, 300))


def test_calls(server):
    async def main():
        async with await tamis.aconnect(f"redis://{server}/aio", 1000, 1e-6) as seen:
            assert await seen.add("key") and not await seen.add("key")
            assert await seen.contains("key") and not await seen.contains("other")
            assert await seen.add_many(["key", "new"]) == [False, True]
            await seen.update(["more"])
            assert await seen.contains_many(["more", "none"]) == [True, False]
            assert (await seen.info())["keys"] == 3
            copy = await seen.copy()
            assert "more" in copy and "AsyncRedisFilter" in repr(seen)
            await seen.expire(100)
            await seen.clear()
            assert not await seen.contains("key")
            await seen.delete()
        with pytest.raises(tamis.ClosedError):
            await seen.add("late")
        await seen.close()
        async with await tamis.aconnect(f"redis://{server}/aio2", 1000, delete=True) as online:
            assert await online.add("a") and await online.count("a") == 1 and await online.remove("a")
            await online.delete()

    run(main())


def test_of_many_tasks_one_is_told_new(server):
    async def main():
        workers = [await tamis.aconnect(f"redis://{server}/race", 10_000, 1e-6) for _ in range(4)]
        tasks = [worker.add(f"key{i}") for i in range(200) for worker in workers]
        answers = await asyncio.gather(*tasks)
        assert sum(answers) == 200
        await workers[0].delete()
        for worker in workers:
            await worker.close()

    run(main())


def test_the_loop_goes_on_meanwhile(server):
    """A call that is held up by a silent server holds up nobody else, and can be cancelled."""

    async def main():
        enough = asyncio.Event()

        async def hold(_, writer):
            await enough.wait()
            writer.close()

        silent = await asyncio.start_server(hold, "127.0.0.1", 0)
        port = silent.sockets[0].getsockname()[1]
        waiting, cancelled = (
            asyncio.create_task(tamis.aconnect(f"redis://127.0.0.1:{port}/x", timeout=600, retry_for=0)) for _ in "ab"
        )
        async with await tamis.aconnect(f"redis://{server}/beside", 1000) as seen:
            assert await seen.add("key")
            assert not waiting.done() and not cancelled.done()
            await seen.delete()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        enough.set()
        with pytest.raises(tamis.ServerError):
            await waiting
        silent.close()

    run(main())


def test_mistakes_are_said(server):
    async def main():
        with pytest.raises(tamis.NotFoundError):
            await tamis.aconnect(f"redis://{server}/nowhere")
        async with await tamis.aconnect(f"redis://{server}/wrong", 1000) as seen:
            with pytest.raises(tamis.KeyTypeError):
                await seen.add(None)
            await seen.delete()

    run(main())


def test_a_cancelled_call_holds_up_nobody(server):
    """The calls behind it don't wait until it is done, which takes for ever here."""

    async def main():
        enough = asyncio.Event()
        held = []

        async def pass_on(reader, writer):
            """A wire to the server that stands still once it hears of a certain key."""
            there, back = await asyncio.open_connection(*server.split(":"))

            async def answers():
                while data := await there.read(1 << 16):
                    writer.write(data)
                writer.close()

            answering = asyncio.create_task(answers())
            number = 0
            while data := await reader.read(1 << 16):
                number += 1
                if not held and len(data) > 50_000:
                    held.append(number)
                    await enough.wait()
                back.write(data)
            back.close()
            await answering

        wire = await asyncio.start_server(pass_on, "127.0.0.1", 0)
        port = wire.sockets[0].getsockname()[1]
        at = f"redis://127.0.0.1:{port}/cancelled"
        async with await tamis.aconnect(at, 100_000, 1e-6, timeout=600) as seen:
            stuck = asyncio.create_task(seen.add_many([f"key{i}" for i in range(4_000)]))
            others = [asyncio.create_task(seen.add(f"other{i}")) for i in range(120)]
            while not held:
                await asyncio.sleep(0)
            assert not any(other.done() for other in others)
            stuck.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stuck
            assert await asyncio.gather(*others) == [True] * 120
            assert not enough.is_set()
            enough.set()
        wire.close()

    run(main())


def test_another_loop_and_another_process(server):
    seen = asyncio.run(tamis.aconnect(f"redis://{server}/loops", 1000, 1e-6))

    async def main(name):
        return await asyncio.gather(*(seen.add(f"{name}{i}") for i in range(10)))

    assert asyncio.run(main("a")) == [True] * 10
    assert asyncio.run(main("b")) == [True] * 10
    pid = os.fork()
    if pid == 0:
        wrong = 1
        try:
            wrong = 0 if asyncio.run(main("c")) == [True] * 10 else 2
        finally:
            os._exit(wrong)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert asyncio.run(main("c")) == [False] * 10
    asyncio.run(seen.delete())
    asyncio.run(seen.close())
