"""The control modes that moorage brings, registered through the same hook as anyone's, and what they work with."""

from moorage._control.context import ControlSettings, ModelControl

__all__ = ["ControlSettings", "ModelControl"]
