"""The exception tree, on one screen. Exit codes are documented in the README and are part of the interface."""

from __future__ import annotations

from firmware.fault import AudioFault, DeviceFault, Fault, StorageFault

__all__ = [
    "AudioFault",
    "ConfigFault",
    "DeadlineFault",
    "DeviceFault",
    "Fault",
    "KnowledgeFault",
    "ManifestFault",
    "ModelDamaged",
    "ModelFault",
    "ModelMissing",
    "NetworkFault",
    "SkillFault",
    "SourceFault",
    "StorageFault",
]


class ConfigFault(Fault):
    """A setting that is unknown, of the wrong type or out of range."""

    code = 2


class ModelFault(Fault):
    """A model that cannot be used."""

    code = 4


class ModelMissing(ModelFault):
    """No such model, or one that is known and not built."""


class ModelDamaged(ModelFault):
    """A file of a built model does not have the content that was recorded."""


class ManifestFault(ModelFault):
    """A manifest that cannot be read; the message names the file and the key."""


class SourceFault(ModelFault):
    """The origin of a model could not be fetched, or is not what the manifest says."""


class DeadlineFault(Fault):
    """A stage did not finish in the time it was given."""

    code = 7

    def __init__(self, stage: str, seconds: float) -> None:
        super().__init__(
            f"{stage} did not finish within {seconds:.1f} s", "see `parley doctor` for what slows this box"
        )
        self.stage = stage
        self.seconds = seconds


class SkillFault(Fault):
    """A skill that cannot be loaded, or failed; the message names its file and line, or what it did. `deeds` are the
    acts that had been carried out by then (`appliance.skills.skill.Deed`)."""

    code = 8
    deeds: tuple[object, ...] = ()


class KnowledgeFault(Fault):
    """A document that cannot be read; the message names the file and the line."""

    code = 9


class NetworkFault(Fault):
    """The network, or who should answer there, did not, in the time it was given."""

    code = 10
