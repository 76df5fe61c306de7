"""All frameworks in one process and one server, asked at once while their models are replaced: `python all_together.py FOLDER`.

Prints what it saw as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from moorage.server import Server

REQUESTS = 150
CLIENTS = 2


def sides(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.normal(size=(1 + seed % 3, 3)).astype(np.float32) for name in ("LEFT", "RIGHT")}


class Asking:
    """Clients of a server that count what they are answered, by model."""

    def __init__(self, server: Server) -> None:
        self.right: Counter[str] = Counter()
        self.wrong: dict[str, str] = {}
        self._server = server
        self._lock = threading.Lock()

    def ask(self, model: str, seed: int) -> None:
        inputs = sides(seed)
        try:
            found = self._server.infer(model, inputs, timeout=60)
            np.testing.assert_allclose(found["TOTAL"], inputs["LEFT"] + inputs["RIGHT"], rtol=1e-5)
            np.testing.assert_allclose(found["GAP"], inputs["LEFT"] - inputs["RIGHT"], rtol=1e-5)
        except Exception as error:
            self.wrong.setdefault(model, repr(error))
            return
        with self._lock:
            self.right[model] += 1

    def client(self, model: str, number: int) -> None:
        for index in range(REQUESTS):
            self.ask(model, number * REQUESTS + index)


def main(repository: str) -> dict[str, object]:
    with Server(model_repository=repository, model_control_mode="explicit", load_model="*", exit_on_error=False) as server:
        states = {entry.name: f"{entry.state} {entry.reason}".strip() for entry in server.index()}
        models = sorted(entry.name for entry in server.index(ready=True))
        asking = Asking(server)
        with ThreadPoolExecutor(CLIENTS * len(models) + 1) as pool:
            clients = [pool.submit(asking.client, model, number) for number in range(CLIENTS) for model in models]
            for model in models:
                server.load(model, force=True)
            for client in clients:
                client.result()
        left = models[:]
        for model in models:
            server.unload(model)
            left.remove(model)
            for other in left:
                asking.ask(other, 0)
    loaded = [name for name in ("onnxruntime", "openvino", "tensorflow", "torch") if name in sys.modules]
    return {"states": states, "right": asking.right, "wrong": asking.wrong, "frameworks": loaded}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
