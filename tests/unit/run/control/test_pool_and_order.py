"""Who waits for the pool, and in which order flows that were planned before start."""

from __future__ import annotations

import asyncio

from headrace.run.cancellation import Cancellation
from headrace.run.control.plan_order import PlanOrder
from headrace.run.control.pool import Pool, PoolResource


def test_the_pool_goes_to_the_lowest_rank_and_then_to_who_came_first() -> None:
    taken: list[str] = []

    async def use(pool: Pool, rank: int, name: str) -> None:
        await pool.acquire(rank)
        taken.append(name)
        await asyncio.sleep(0)
        pool.release()

    async def all_of_them() -> None:
        pool = Pool()
        await pool.acquire(0)
        waiting = [(3, "d"), (1, "a"), (2, "b"), (2, "c")]
        tasks = [asyncio.create_task(use(pool, rank, name)) for rank, name in waiting]
        await asyncio.sleep(0)
        pool.release()
        await asyncio.gather(*tasks)

    asyncio.run(all_of_them())
    assert taken == ["a", "b", "c", "d"]


def test_nobody_who_comes_is_faster_than_who_waits() -> None:
    async def run() -> bool:
        pool = Pool()
        await pool.acquire(5)
        waiting = asyncio.create_task(pool.acquire(9))
        await asyncio.sleep(0)
        pool.release()
        second = asyncio.create_task(pool.acquire(1))
        await asyncio.wait([waiting, second], return_when=asyncio.FIRST_COMPLETED)
        is_fair = waiting.done() and not second.done()
        pool.release()
        await second
        return is_fair

    assert asyncio.run(run())


def test_one_at_a_time() -> None:
    held, most = 0, 0

    async def use(pool: Pool, rank: int) -> None:
        nonlocal held, most
        resource = PoolResource(pool, rank)
        for _ in range(20):
            await resource.acquire()
            held += 1
            most = max(most, held)
            await asyncio.sleep(0)
            held -= 1
            resource.release()

    async def run() -> None:
        pool = Pool()
        await asyncio.gather(*(use(pool, rank % 3) for rank in range(10)))

    asyncio.run(run())
    assert (held, most) == (0, 1)


def test_who_works_with_the_pool_is_who_is_asked() -> None:
    pool = Pool()
    first, second = Cancellation(), Cancellation()
    assert not pool.is_cancelled()
    pool.works_for(first)
    first.set()
    assert pool.is_cancelled()
    pool.works_for(second)
    assert not pool.is_cancelled()


def started(order: PlanOrder, *names: str) -> list[str]:
    """The flows that start at once."""

    async def run() -> list[str]:
        tasks = {name: asyncio.create_task(order.turn(name)) for name in names}
        await asyncio.sleep(0)
        done = [name for name, task in tasks.items() if task.done()]
        for task in tasks.values():
            task.cancel()
        return done

    return asyncio.run(run())


def test_planned_flows_start_in_the_order_of_the_plan() -> None:
    assert started(PlanOrder(["a", "b", "c"]), "c", "b", "a") == ["a"]
    assert started(PlanOrder(["a", "b"]), "other") == ["other"]


def test_who_is_settled_is_waited_for_no_longer() -> None:
    def settled(*names: str, inside: str | None = None) -> PlanOrder:
        order = PlanOrder(["a", "b[1].x", "b[2].x", "bb", "c"])
        for name in names:
            order.settle(name)
        if inside is not None:
            order.settle_inside(inside)
        return order

    assert started(settled("b[1].x"), "c", "bb", "b[2].x") == []
    assert started(settled("b[1].x", "a"), "c", "bb", "b[2].x") == ["b[2].x"]
    assert started(settled("a", inside="b"), "c", "bb") == ["bb"]
    assert started(settled("a", "bb", inside="b"), "c") == ["c"]


def test_who_waits_is_woken() -> None:
    async def run() -> list[str]:
        order = PlanOrder(["a", "b", "c"])
        woken: list[str] = []

        async def flow(name: str) -> None:
            await order.turn(name)
            woken.append(name)
            order.settle(name)

        await asyncio.gather(*(flow(name) for name in ("c", "b", "a")))
        return woken

    assert asyncio.run(run()) == ["a", "b", "c"]
