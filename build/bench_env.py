"""Makes the peers' environment in the cache: what the bench measures against never enters Parley's own.

Standard library only. An environment that already holds the wanted versions is taken as it is. llama.cpp is compiled
once for the instruction sets of this machine that matter (without AMX, whose kernels need a repacked copy of the
weights that Parley does not have either) and kept as a wheel.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from steps import CACHE, StepFailed, Steps

ENV = CACHE / "bench-env"
WHEELS = CACHE / "wheels"
PYTHON = ENV / "bin/python"
PEERS = {
    "faster-whisper": "1.2.1",
    "piper-tts": "1.8.0",
    "openvino-genai": "2026.4.1.0",
    "pymicro-wakeword": "2.5.0",
    "livekit": "1.2.1",
}
LLAMA = "0.3.36"
INSTRUCTIONS = {
    "GGML_AVX": "avx",
    "GGML_AVX2": "avx2",
    "GGML_FMA": "fma",
    "GGML_F16C": "f16c",
    "GGML_BMI2": "bmi2",
    "GGML_AVX_VNNI": "avx_vnni",
    "GGML_AVX512": "avx512f",
    "GGML_AVX512_VBMI": "avx512vbmi",
    "GGML_AVX512_VNNI": "avx512_vnni",
    "GGML_AVX512_BF16": "avx512_bf16",
}
PIP = ["-m", "pip", "install", "--no-input", "--progress-bar", "off", "--disable-pip-version-check"]


def installed() -> dict[str, str]:
    """The versions of the distributions in the environment; empty where there is none."""
    code = "from importlib import metadata as m\nfor d in m.distributions(): print(d.name.replace('_', '-'), d.version)"
    if not PYTHON.exists():
        return {}
    listed = subprocess.run([PYTHON, "-c", code], capture_output=True, text=True, check=False).stdout
    return dict(line.split(" ", 1) for line in listed.splitlines())


def missing() -> list[str]:
    have = installed()
    return [f"{name}=={version}" for name, version in PEERS.items() if have.get(name) != version]


def cmake_args() -> str:
    """Switches everything native off and this machine's own instruction sets on, one by one. Arm compilers choose by
    themselves, so there native stays on."""
    flags = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")), "")
    have = set(flags.split())
    if not have:
        return "-DGGML_NATIVE=ON"
    switches: Iterator[str] = (f"-D{name}={'ON' if flag in have else 'OFF'}" for name, flag in INSTRUCTIONS.items())
    return " ".join(["-DGGML_NATIVE=OFF", *switches, "-DGGML_AMX_TILE=OFF", "-DGGML_AMX_INT8=OFF"])


def llama_wheel() -> Path | None:
    return next(WHEELS.glob(f"llama_cpp_python-{LLAMA}-*.whl"), None)


def install(steps: Steps) -> None:
    if not PYTHON.exists():
        steps.run("the peers' environment", [sys.executable, "-m", "venv", str(ENV)])
    wanted = missing()
    if wanted:
        steps.run(f"peers: {', '.join(wanted)}", [str(PYTHON), *PIP, *wanted])
    if installed().get("llama-cpp-python") == LLAMA:
        return
    WHEELS.mkdir(parents=True, exist_ok=True)
    if llama_wheel() is None:
        build = [str(PYTHON), "-m", "pip", "wheel", "--no-deps", "-w", str(WHEELS), f"llama-cpp-python=={LLAMA}"]
        env = {"CMAKE_ARGS": cmake_args(), "CMAKE_BUILD_PARALLEL_LEVEL": str(os.cpu_count() or 1)}
        steps.run("compiling llama.cpp (about 20 minutes on 2 cores, once)", build, env)
    steps.run("llama-cpp-python", [str(PYTHON), *PIP, str(llama_wheel())])


def main() -> int:
    if not missing() and installed().get("llama-cpp-python") == LLAMA:
        return 0
    steps = Steps("bench-setup")
    try:
        install(steps)
    except StepFailed:
        print(
            f"error: the peers could not be installed\n{steps.tail()}\n"
            f"  fix: llama.cpp needs a C++ compiler (apt-get install build-essential); the whole log: {steps.log}",
            file=sys.stderr,
        )
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        print("\nstopped; run the same command again to go on", file=sys.stderr)
        sys.exit(130)
