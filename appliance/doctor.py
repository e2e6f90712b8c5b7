"""What this box has and lacks, and the exact fix. Every check looks at one thing and says what it found."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

import psutil

from appliance.config import Audio, Config, Wake, state_home
from appliance.controls import Controls
from appliance.errors import DeviceFault, ModelDamaged, ModelMissing
from appliance.runtime.card import Shelf
from appliance.store.db import unsound
from firmware import apm, cards, device, preflight, speex
from firmware.echo import usable

Level = Literal["ok", "warn", "fail"]
NEED_MB = 850
"""Resident memory with every model of the default pack loaded (the upper one of the two targets)."""
SPARE_DISK_MB = 2_000
"""What building the default pack takes: the sources, the artefacts, and one of them twice."""
HONEST_FSYNC_US = 30
"""No flash or disk reaches its medium faster; a sync that returns sooner was answered by a cache."""
LIBRARIES = (
    *("numpy", "onnxruntime", "onnx", "gguf", "tokenizers", "jinja2", "llguidance", "unicode-rbnf", "rich"),
    *("livekit", "pymicro-features"),
)


@dataclass(frozen=True, slots=True)
class Finding:
    """`fix` is empty when there is nothing to put right."""

    check: str
    level: Level
    found: str
    fix: str = ""


def examine(config: Config, shelf: Shelf) -> Iterator[Finding]:
    """Runs every check in turn."""
    for check in (python, processor, cores, memory, load, clock, libraries):
        yield from check()
    yield from sound(config)
    yield from muted(state_home())
    yield from models(shelf)
    yield from wake_words(config.wake, shelf)
    yield from disk(config.models.cache)
    yield from databases(state_home())


# --- the machine -------------------------------------------------------------------------------------------------


def python() -> Iterator[Finding]:
    yield Finding("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _text(path: str) -> str:
    """A small file of the kernel's; empty where there is none."""
    try:
        return Path(path).read_text(errors="replace").strip()
    except OSError:
        return ""


def _cpuinfo() -> dict[str, str]:
    lines = (line.partition(":") for line in _text("/proc/cpuinfo").splitlines())
    return {key.strip().lower(): value.strip() for key, _, value in lines}


def cpu_features(info: dict[str, str]) -> list[str]:
    """Those that decide how fast 8-bit models run, in the order of their worth."""
    flags = set(info.get("flags", info.get("features", "")).split())
    known = ("avx2", "avx_vnni", "avx512_vnni", "amx_int8", "asimd", "asimddp", "i8mm", "sve")
    return [name for name in known if name in flags]


def processor() -> Iterator[Finding]:
    info = _cpuinfo()
    features = cpu_features(info)
    name = info.get("model name") or info.get("cpu part") or platform.processor() or "unknown processor"
    found = f"{name}: {', '.join(features) or 'no feature that matters is known of it'}"
    fast = {"avx512_vnni", "avx_vnni", "asimddp"} & set(features)
    if fast:
        yield Finding("processor", "ok", found)
    elif {"avx2", "asimd"} & set(features):
        yield Finding("processor", "warn", f"{found}; 8-bit models run without dot-product instructions, slower")
    else:
        yield Finding("processor", "fail", found, "use a processor with AVX2, or an Arm core with ASIMD")
    governor = _text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor == "powersave":
        fix = "echo schedutil | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
        yield Finding("power mode", "warn", "the powersave governor makes the first words of an answer late", fix)


def cgroup_cores() -> float | None:
    """The CPU quota of this control group in cores; None without one."""
    quota, _, period = _text("/sys/fs/cgroup/cpu.max").partition(" ")
    if not period:
        quota, period = _text("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"), _text("/sys/fs/cgroup/cpu/cpu.cfs_period_us")
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def cores() -> Iterator[Finding]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cgroup_cores()
    found = f"{usable} usable" + (f", limited to {quota:.1f} by the control group" if quota is not None else "")
    if min(usable, quota or usable) < 2:
        yield Finding("cores", "warn", found, "give Parley two cores: recognition and synthesis overlap")
    else:
        yield Finding("cores", "ok", found)


def cgroup_memory_mb() -> float | None:
    """What this control group may still take; None without a limit."""
    limit = _text("/sys/fs/cgroup/memory.max") or _text("/sys/fs/cgroup/memory/memory.limit_in_bytes")
    used = _text("/sys/fs/cgroup/memory.current") or _text("/sys/fs/cgroup/memory/memory.usage_in_bytes")
    if not limit.isdigit() or not used.isdigit() or int(limit) > 1 << 60:
        return None
    return (int(limit) - int(used)) / 1e6


def memory() -> Iterator[Finding]:
    free = psutil.virtual_memory().available / 1e6
    limit = cgroup_memory_mb()
    found = f"{free:.0f} MB available" + (f", {limit:.0f} MB left to the control group" if limit is not None else "")
    if min(free, limit if limit is not None else free) < NEED_MB:
        fix = 'end other programs, or take the small recogniser: [models] asr = "whisper-tiny.en"'
        yield Finding("memory", "fail", f"{found}; all models take up to {NEED_MB} MB", fix)
    else:
        yield Finding("memory", "ok", f"{found}; all models take up to {NEED_MB} MB")


def load() -> Iterator[Finding]:
    average = os.getloadavg()[0]
    busy = average / (os.cpu_count() or 1)
    if busy > 1.0:
        yield Finding("load", "warn", f"{average:.1f} over the last minute", "end what else runs: answers will be late")
    else:
        yield Finding("load", "ok", f"{average:.1f} over the last minute")


def clock() -> Iterator[Finding]:
    source = _text("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "unknown"
    year = time.gmtime().tm_year
    if year < 2025:
        yield Finding("clock", "warn", f"the year is {year}", "set the clock: sudo timedatectl set-ntp true")
    elif source in ("hpet", "acpi_pm", "jiffies"):
        yield Finding(
            "clock", "warn", f"the slow clock source {source}", "see the kernel's log for why tsc was refused"
        )
    else:
        yield Finding("clock", "ok", time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()) + f", source {source}")


# --- software ----------------------------------------------------------------------------------------------------


def libraries() -> Iterator[Finding]:
    found, missing = [], []
    for name in LIBRARIES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        yield Finding("libraries", "fail", f"missing: {', '.join(missing)}", f"{sys.executable} -m pip install -e .")
    else:
        yield Finding("libraries", "ok", ", ".join(found))


def models(shelf: Shelf) -> Iterator[Finding]:
    for fault in shelf.faults():
        yield Finding("manifest", "fail", fault.message, fault.fix or "correct that manifest")
    for card in shelf.cards().values():
        fix = f"parley models build {card.id}"
        try:
            shelf.built(card.id)
        except ModelMissing:
            level: Level = "ok" if card.optional else "fail"
            found = "not built, and not needed" if card.optional else "not built"
            yield Finding(f"model {card.id}", level, found, fix)
        except ModelDamaged as fault:
            yield Finding(f"model {card.id}", "fail", fault.message, fix)
        else:
            yield Finding(f"model {card.id}", "ok", f"built: {card.summary}")


# --- sound -------------------------------------------------------------------------------------------------------


def sound(config: Config, system: preflight.System | None = None) -> Iterator[Finding]:
    """What keeps this user from live sound, or which devices there are; and whether the echo is cancelled."""
    found = preflight.obstacles(system or preflight.system())
    for obstacle in found:
        if obstacle.barred:
            yield Finding("sound permission", "fail", obstacle.found, obstacle.fix)
        else:
            yield Finding("live audio", "warn", obstacle.found, obstacle.fix)
    if any(obstacle.severe for obstacle in found):
        yield from echo(config.audio, "")
    else:
        yield from devices(config.audio)


def devices(audio: Audio, patience: float = 10.0) -> Iterator[Finding]:
    """Lists them in a thread of its own: a sick sound server must not hang the doctor."""
    answer: list[list[device.Port] | DeviceFault] = []

    def ask() -> None:
        try:
            answer.append(device.ports())
        except DeviceFault as fault:
            answer.append(fault)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(patience)
    if not answer:
        fix = "restart the sound server: systemctl --user restart pipewire pipewire-pulse (or pulseaudio)"
        yield Finding("live audio", "warn", f"PortAudio did not answer within {patience:.0f} s", fix)
    elif isinstance(answer[0], DeviceFault):
        yield Finding("live audio", "warn", f"left out, everything else works: {answer[0].message}", answer[0].fix)
    else:
        yield from _chosen(audio, answer[0])


def _chosen(audio: Audio, found: list[device.Port]) -> Iterator[Finding]:
    """The devices of each kind, the one that the settings choose in front."""
    chosen: list[device.Port] = []
    wanted: tuple[tuple[str, str, device.Direction], ...] = (
        ("microphone", audio.input, "capture"),
        ("loudspeaker", audio.output, "playback"),
    )
    for what, name, direction in wanted:
        try:
            port = device.choose(found, name, direction)
        except DeviceFault as fault:
            yield Finding(what, "warn", fault.message, fault.fix)
            continue
        chosen.append(port)
        others = [other.id for other in found if other.channels(direction) and other is not port]
        yield Finding(what, "ok", ", ".join([f"{port.id} (this one is used)", *others]))
    yield from echo(audio, cards.cancels_echo(chosen[0].node, chosen[1].node) if len(chosen) == 2 else "")


def echo(audio: Audio, by_the_card: str) -> Iterator[Finding]:
    """Which canceller works; `by_the_card` says why none of ours is needed."""
    chosen, warning = cards.one_canceller(audio.echo, by_the_card)
    if warning:
        yield Finding("echo", "warn", warning, 'set [audio] echo = "auto"')
    elif by_the_card:
        yield Finding("echo", "ok", by_the_card)
    used, _ = usable(chosen)  # type: ignore[arg-type]  # the setting's choices
    for name, check in (("webrtc", apm.check), ("speex", speex.check)):
        try:
            check()
        except DeviceFault as fault:
            level: Level = "warn" if name == chosen else "ok"
            instead = "the box is deaf while it speaks" if used == "off" else f"{used} is used instead"
            note = "not there, and not needed" if level == "ok" else f"not there: {instead}"
            yield Finding(f"echo {name}", level, f"{note} ({fault.message})", fault.fix)
        else:
            yield Finding(f"echo {name}", "ok", "works" + ", and is used" * (name == used))


def wake_words(wake: Wake, shelf: Shelf) -> Iterator[Finding]:
    """What it takes to hear them; nothing is needed where a button wakes the box."""
    if wake.mode != "word":
        yield Finding("wake words", "ok", f'none are listened for: [wake] mode is "{wake.mode}"')
        return
    runtimes = [name for name in ("ai_edge_litert", "tflite_runtime") if importlib.util.find_spec(name)]
    missing = [] if runtimes else ["ai-edge-litert"]
    missing += [] if importlib.util.find_spec("pymicro_features") else ["pymicro-features"]
    if missing:
        fix = f"{sys.executable} -m pip install {' '.join(missing)}"
        yield Finding("wake words", "fail", f"missing: {', '.join(missing)}", fix)
        return
    from appliance.runtime.wakeword import open_words  # it needs what was just looked for

    with open_words(shelf, [f"wake-{word}" for word in wake.words]) as (words, faults):
        if words:
            yield Finding("wake words", "ok", f"{', '.join(word.name for word in words)}, on {runtimes[0]}")
        for fault in faults:
            yield Finding("wake words", "fail", fault.message, fault.fix or "correct [wake] words")


def muted(folder: Path) -> Iterator[Finding]:
    controls = Controls(folder)
    if controls.doubt:
        yield Finding("muted", "warn", f"muted, since {controls.path} is damaged: {controls.doubt}", "parley mute off")
    elif controls.muted:
        yield Finding("muted", "warn", "the microphone is closed", "parley mute off")
    else:
        yield Finding("muted", "ok", "no")


# --- disk --------------------------------------------------------------------------------------------------------


def file_system(path: Path) -> str:
    """The type of the file system that holds `path`; the longest mount point wins."""
    best, kind = -1, "unknown"
    for line in _text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        mount = left.split(" ")[4].replace("\\040", " ")
        if len(mount) > best and path.is_relative_to(mount):
            best, kind = len(mount), right.split(" ")[0]
    return kind


def sync_us(folder: Path, rounds: int = 20) -> float:
    """The median time of an fsync after a 4 KiB append, in microseconds."""
    spent = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(rounds):
            file.write(b"\0" * 4096)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            spent.append((time.perf_counter() - began) * 1e6)
    return statistics.median(spent)


def write_mb_s(folder: Path, size_mb: int = 32) -> float:
    """Sequential write speed, the sync included."""
    block = os.urandom(1 << 20)
    with tempfile.TemporaryFile(dir=folder) as file:
        began = time.perf_counter()
        for _ in range(size_mb):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return size_mb / (time.perf_counter() - began)


def disk(folder: Path) -> Iterator[Finding]:
    place = folder
    while not place.exists():
        place = place.parent
    kind = file_system(place.resolve())
    free = shutil.disk_usage(place).free / 1e6
    if free < SPARE_DISK_MB:
        fix = f"make room below {place}, or set [models] cache to a larger disk"
        yield Finding("disk space", "warn", f"{free:.0f} MB free; building takes {SPARE_DISK_MB} MB", fix)
    else:
        yield Finding("disk space", "ok", f"{free / 1000:.0f} GB free in {place} ({kind})")
    try:
        speed, sync = write_mb_s(place), sync_us(place)
    except OSError as error:
        yield Finding("disk", "fail", f"{place} cannot be written: {error}", f"chown it: sudo chown $USER {place}")
        return
    yield Finding("disk speed", "ok" if speed > 5 else "warn", f"{speed:.0f} MB/s written and synced")
    yield _sync_finding(sync, kind)


def databases(folder: Path) -> Iterator[Finding]:
    """What is remembered: read through, and not changed."""
    for path in sorted(folder.glob("*.db")):
        if fault := unsound(path):
            yield Finding(
                path.stem, "fail", f"{path} is damaged: {fault}", "restart the daemon: it is moved aside, whole"
            )
        else:
            yield Finding(path.stem, "ok", f"{path.name} is sound, {path.stat().st_size / 1024:.0f} kB")
    for path in sorted(folder.glob("*.damaged-*")):
        if not path.name.endswith(("-wal", "-shm")):
            yield Finding("damaged", "warn", f"{path} was moved aside", "keep it for a rescue, or delete it")


def _sync_finding(sync: float, kind: str) -> Finding:
    found = f"fsync takes {sync:.0f} us on {kind}"
    if kind in ("tmpfs", "ramfs"):
        return Finding("disk sync", "warn", f"{found}: memory, gone at power-off", "set [models] cache to a real disk")
    if sync < HONEST_FSYNC_US:
        fix = "do not trust this disk with a power cut; on a virtual machine set the disk's cache mode to writethrough"
        return Finding("disk sync", "warn", f"{found}: too fast to have reached the medium", fix)
    return Finding("disk sync", "ok", found)
