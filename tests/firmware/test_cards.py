from __future__ import annotations

import pytest

from firmware.cards import LEAD_IN, Kind, Node, cancels_echo, kind, one_canceller

SPEAKERS = Node("alsa_output.pci-0000_00_1f.3.analog-stereo", "Built-in Audio", {"device.bus": "pci"})
BUILT_IN = Node("alsa_input.pci-0000_00_1f.3.analog-stereo", "Built-in Audio", {"device.bus": "pci"})


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        (SPEAKERS, "other"),
        (Node("bcm2835 Headphones: - (hw:0,0)"), "other"),
        (Node("alsa_output.pci-0000_01_00.1.hdmi-stereo", "GK107 HDMI Audio", {"device.bus": "pci"}), "hdmi"),
        (Node("vc4-hdmi-0: MAI PCM i2s-hifi-0 (hw:1,0)"), "hdmi"),
        (Node("spk", "Null Output", {"device.profile.name": "hdmi-stereo"}), "hdmi"),
        (Node("bluez_output.00_1B_66.1", "Speaker", {"device.api": "bluez5"}), "bluetooth"),
        (Node("alsa_output.usb-GN_Netcom_Jabra.analog-stereo", "Jabra", {"device.bus": "usb"}), "usb"),
        (Node("UACDemoV1.0: USB Audio (hw:2,0)"), "usb"),
        (Node("Headset (hw:2,0)", properties={"device.bus": "usb"}), "usb"),
    ],
)
def test_the_kind_of_a_sink(sink: Node, expected: Kind) -> None:
    assert kind(sink) == expected


def test_lead_ins_are_as_long_as_sinks_of_their_kind_sleep() -> None:
    assert LEAD_IN == {"hdmi": 1.5, "bluetooth": 0.8, "usb": 0.3, "other": 0.0}


SPEAKERPHONES = [
    "Jabra SPEAK 510 USB: Audio (hw:1,0)",
    "Anker PowerConf S3: USB Audio (hw:1,0)",
    "Poly Sync 20: USB Audio (hw:1,0)",
    "eMeet OfficeCore M0 Plus: USB Audio (hw:1,0)",
    "reSpeaker XVF3800 4-Mic Array: USB Audio (hw:2,0)",
    "ReSpeaker 4 Mic Array (UAC1.0): USB Audio (hw:2,0)",
    "XMOS VocalFusion St: USB Audio (hw:2,0)",
]


@pytest.mark.parametrize("name", SPEAKERPHONES)
def test_a_speakerphone_cancels_what_it_plays_itself(name: str) -> None:
    """C74. What another loudspeaker plays reaches it as an echo like any microphone."""
    assert cancels_echo(Node(name), Node(name)) == f"{name} cancels its own echo"
    assert cancels_echo(Node(name), SPEAKERS) == ""
    assert cancels_echo(BUILT_IN, Node(name)) == ""


@pytest.mark.parametrize(
    "source",
    [
        Node("mic.echo-cancel", "Mic (echo cancelled with Speakers)", {"device.class": "filter"}),
        Node("ec", "Remapped Monitor of Null Output (echo cancelled with Null Output)"),
        Node("source_ec", "Mic", {"node.name": "effect_input.echo-cancel"}),
        Node("clean", "Remapped mic.echo-cancel", {"device.master_device": "mic.echo-cancel"}),
    ],
)
def test_a_canceller_of_the_server_is_one(source: Node) -> None:
    assert cancels_echo(source, SPEAKERS) == f"{source.name} is an echo canceller of the sound server"


@pytest.mark.parametrize(
    "name", ["Polyphonic Synth (hw:1,0)", "HD-Audio Generic: ALC257 (hw:0,0)", "seeed-2mic-voicecard"]
)
def test_others_do_not(name: str) -> None:
    assert cancels_echo(Node(name), Node(name)) == ""


@pytest.mark.parametrize(
    ("wanted", "reason", "backend", "warns"),
    [
        ("auto", "", "webrtc", False),
        ("speex", "", "speex", False),
        ("off", "", "off", False),
        ("auto", "it does", "off", False),
        ("off", "it does", "off", False),
        ("webrtc", "it does", "off", True),
        ("speex", "it does", "off", True),
    ],
)
def test_the_echo_has_one_canceller(wanted: str, reason: str, backend: str, warns: bool) -> None:
    """C74: both configured is a warning, and one of them is off."""
    chosen, warning = one_canceller(wanted, reason)
    assert chosen == backend
    assert bool(warning) == warns
    assert not warns or (wanted in warning and reason in warning)
