"""OpenVINO GenAI. {"ids": [...], "count": N} -> `first`, the seconds until the first token, and `each`, the seconds per
token behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
import openvino_genai as genai
from service import Answer, serve


def start(settings: dict[str, Any]) -> Answer:
    pipeline = genai.LLMPipeline(settings["lm"], "CPU", INFERENCE_NUM_THREADS=settings["threads"])

    def answer(request: dict[str, Any]) -> dict[str, Any]:
        config = genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = request["count"]
        config.ignore_eos = True
        ids = np.array([request["ids"]], np.int64)
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        metrics = pipeline.generate(inputs, config).perf_metrics
        return {"first": metrics.get_ttft().mean / 1e3, "each": metrics.get_tpot().mean / 1e3}

    return answer


serve(start)
