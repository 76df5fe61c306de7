"""All that runs beside a model's own code: what `triton_python_backend_utils` offers, the import of the model, and its host.

Nothing here imports anything but the standard library, numpy and this package, so that it can run in another interpreter.
"""
