"""OpenVINO GenAI in an environment of its own.

Reads JSON lines on standard input, writes one for each: {"ids": [...], "count": N} -> `first`, the seconds until the
first token, and `each`, the seconds per token behind it.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import openvino as ov
import openvino_genai as genai


def main() -> None:
    settings = json.loads(sys.argv[1])
    pipeline = genai.LLMPipeline(settings["model"], "CPU", INFERENCE_NUM_THREADS=settings["threads"])
    print(json.dumps({"ready": True}), flush=True)
    for request in map(json.loads, sys.stdin):
        config = genai.GenerationConfig()
        config.max_new_tokens = config.min_new_tokens = request["count"]
        config.ignore_eos = True
        ids = np.array([request["ids"]], np.int64)
        inputs = genai.TokenizedInputs(ov.Tensor(ids), ov.Tensor(np.ones_like(ids)))
        metrics = pipeline.generate(inputs, config).perf_metrics
        answer = {"first": metrics.get_ttft().mean / 1e3, "each": metrics.get_tpot().mean / 1e3}
        print(json.dumps(answer), flush=True)


main()
