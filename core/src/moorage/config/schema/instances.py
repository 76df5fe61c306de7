"""Instance groups: how many copies of a model run, and where."""

from __future__ import annotations

from attrs import field, frozen

from moorage.config.schema.enums import InstanceKind, SecondaryDeviceKind


@frozen
class RateLimiterResource:
    name: str = ""
    global_: bool = field(default=False, metadata={"proto": "global"})
    count: int = 0


@frozen
class RateLimiter:
    resources: tuple[RateLimiterResource, ...] = ()
    priority: int = 0


@frozen
class SecondaryDevice:
    kind: SecondaryDeviceKind = SecondaryDeviceKind.KIND_NVDLA
    device_id: int = 0


@frozen
class InstanceGroup:
    name: str = ""
    kind: InstanceKind = InstanceKind.KIND_AUTO
    count: int = 0
    rate_limiter: RateLimiter | None = None
    gpus: tuple[int, ...] = ()
    secondary_devices: tuple[SecondaryDevice, ...] = ()
    profile: tuple[str, ...] = ()
    passive: bool = False
    host_policy: str = ""
