"""An observation in the form that is recorded and compared."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from conformance.runner.case import Seen, Step
from conformance.runner.shape import ALWAYS_IGNORED, blur, order, pick, without


def present(seen: Seen, step: Step, case_words: Sequence[str]) -> Seen:
    """Blur, sort and reduce what was seen, as the step asks."""
    words = _words(step, case_words)
    ignore = [*ALWAYS_IGNORED, *step.get("ignore", [])]
    unordered = step.get("unordered", ())
    if step.get("drop"):
        seen |= {key: without(seen[key], step["drop"]) for key in ("json", "response", "responses", "events") if key in seen}
    if isinstance(seen.get("json"), dict | list):
        seen["json"] = order(blur(seen["json"], words, ignore), unordered)
        if _is_index(step) and isinstance(seen["json"], list):
            seen["json"].sort(key=lambda model: (str(model.get("name")), str(model.get("version"))))
    if "all" in seen and step.get("any_order"):
        seen["all"].sort(key=lambda one: json.dumps(one, sort_keys=True))
    for key in ("response", "responses", "events", "detail"):
        if key in seen:
            seen[key] = order(blur(seen[key], words, ignore), unordered)
    return _reduced(seen, step)


def _reduced(seen: Seen, step: Step) -> Seen:
    for key in ("json", "response") if step.get("pick") else ():
        if isinstance(seen.get(key), dict) and (key == "response" or seen.get("status") == 200):
            seen[key] = {path: pick(seen[key], path) for path in step["pick"]}
    if step.get("ok_only"):
        return {"ok": seen.get("status") == 200 or seen.get("code") == "OK"}
    if step.get("status_only"):
        return {key: value for key, value in seen.items() if key in {"status", "code"}}
    return seen


def _is_index(step: Step) -> bool:
    url: str = step.get("http", "")
    return url.partition("?")[0].endswith("/repository/index")


def _words(step: Step, case_words: Sequence[str]) -> list[str]:
    """The words that messages are searched for: the case's, the step's, and the model that the request names."""
    words = [*case_words, *step.get("words", [])]
    in_url = re.search(r"/models/([^/?]+)", step["http"]) if isinstance(step.get("http"), str) else None
    request: dict[str, Any] = step["request"] if isinstance(step.get("request"), dict) else {}
    asked = [in_url.group(1) if in_url else None, request.get("model_name"), request.get("name")]
    return words + [word for word in asked if word and len(word) > 2 and word not in words]
