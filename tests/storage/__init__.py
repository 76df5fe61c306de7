"""Servers whose model repositories lie in emulators of the clouds' stores."""
