"""The built-in control modes as a plugin."""

from __future__ import annotations

from collections.abc import Iterable

from moorage._control.explicit import Explicit
from moorage._control.none import NoneMode
from moorage._control.on_demand import OnDemand
from moorage._control.poll import Poll
from moorage.control import ControlMode
from moorage.hookspecs import hookimpl


@hookimpl
def control_modes() -> Iterable[type[ControlMode]]:
    return (NoneMode, Explicit, Poll, OnDemand)
