from typing import Any

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests: list[Any]) -> list[Any]:
        responses = []
        for request in requests:
            arrays = {tensor.name(): tensor.as_numpy() for tensor in request.inputs()}
            total = pb_utils.Tensor("TOTAL", arrays["LEFT"] + arrays["RIGHT"])
            gap = pb_utils.Tensor("GAP", arrays["LEFT"] - arrays["RIGHT"])
            responses.append(pb_utils.InferenceResponse(output_tensors=[total, gap]))
        return responses
