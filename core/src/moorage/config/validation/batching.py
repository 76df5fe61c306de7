"""Checks of the dynamic batcher: batch sizes, priorities, queue policies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from moorage.config.parsed import ParsedConfig, item_path
from moorage.config.schema import DynamicBatching, QueuePolicy, TimeoutAction
from moorage.errors import Fault


def batching_faults(parsed: ParsedConfig, *, complete: bool) -> Iterator[Fault]:
    """Faults of `dynamic_batching`."""
    batching = parsed.config.scheduling
    if not isinstance(batching, DynamicBatching):
        return
    path = "dynamic_batching"
    yield from preferred_size_faults(parsed, f"{path}.preferred_batch_size", batching.preferred_batch_size, complete=complete)
    if batching.priority_levels:
        yield from _level_faults(parsed, path, batching)
    if batching.preserve_ordering:
        yield from _ordering_faults(parsed, path, batching)


def preferred_size_faults(parsed: ParsedConfig, path: str, sizes: Sequence[int], *, complete: bool) -> Iterator[Fault]:
    """Faults of a list of preferred batch sizes: each must be above 0 and within `max_batch_size` (once that is settled)."""
    config = parsed.config
    settled = complete or config.max_batch_size > 0 or "max_batch_size" in parsed.given
    for index, size in enumerate(sizes):
        where = f"{path}[{index}]"
        if size <= 0:
            yield parsed.fault(where, f"model '{config.name}' prefers the batch size {size}", "write 1 or more")
        elif settled and size > config.max_batch_size >= 0:
            limit = f"its max_batch_size of {config.max_batch_size}"
            message = f"model '{config.name}' prefers the batch size {size}, above {limit}"
            yield parsed.fault(where, message, f"write a smaller size, or max_batch_size: {size}")


def _level_faults(parsed: ParsedConfig, path: str, batching: DynamicBatching) -> Iterator[Fault]:
    name, levels = parsed.config.name, batching.priority_levels
    advice = f"write a level from 1 to {levels}"
    if not 1 <= batching.default_priority_level <= levels:
        message = f"model '{name}' has {levels} priority levels and the default level {batching.default_priority_level}"
        yield parsed.fault(f"{path}.default_priority_level", message, advice)
    for level in batching.priority_queue_policy:
        if not 1 <= level <= levels:
            where = item_path(f"{path}.priority_queue_policy", level)
            yield parsed.fault(where, f"model '{name}' has a queue policy for level {level} of {levels}", advice)


def _ordering_faults(parsed: ParsedConfig, path: str, batching: DynamicBatching) -> Iterator[Fault]:
    name = parsed.config.name
    if batching.priority_levels > 1:
        message = f"model '{name}' keeps the order of responses, but has {batching.priority_levels} priority levels"
        yield parsed.fault(f"{path}.preserve_ordering", message, "remove preserve_ordering, or write priority_levels: 1")
    policies: list[tuple[str, QueuePolicy]] = []
    if batching.default_queue_policy is not None:
        policies.append((f"{path}.default_queue_policy", batching.default_queue_policy))
    for level, policy in batching.priority_queue_policy.items():
        policies.append((item_path(f"{path}.priority_queue_policy", level), policy))
    for where, policy in policies:
        if policy.default_timeout_microseconds and policy.timeout_action is TimeoutAction.DELAY:
            message = f"model '{name}' keeps the order of responses, but delays requests whose time is up"
            yield parsed.fault(f"{where}.timeout_action", message, "write timeout_action: REJECT, or remove preserve_ordering")
