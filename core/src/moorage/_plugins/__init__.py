"""Finds plugins, checks them, and folds their hooks into frozen tables. Apart from `hookspecs`, only this room knows pluggy."""

from moorage._plugins.advice import FIRST_PARTY, FirstParty
from moorage._plugins.load import load_registry
from moorage._plugins.registry import PluginInfo, Registry

__all__ = ["FIRST_PARTY", "FirstParty", "PluginInfo", "Registry", "load_registry"]
