# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The launcher without a device: a driver that records calls, arrays that only have addresses."""

import ctypes
import gc
import struct

import pytest

from fake_driver import FakeDriver, Foreign, OnTheHost
from gdn import CudaError, Kernel, ManifestError, arrays, launch
from gdn.compile import Compiled

MANIFEST = {
    "version": 1,
    "target": "sm_90a",
    "function": "forward",
    "ptx": "forward.ptx",
    "arguments": [
        {"name": "q", "dtype": "bf16", "shape": [1, None, 2, 8]},
        {"name": "gate", "dtype": "f32", "shape": [1, None, 4]},
        {"name": "offsets", "dtype": "i32", "shape": [None]},
        {"name": "o", "dtype": "bf16", "shape": [1, None, 2, 8]},
    ],
    "buffers": [
        {"dtype": "f32", "shape": [["ceildiv", ["dim", 0, 1], 16], 4]},
        {"dtype": "i64", "shape": [["sub", ["dim", 2, 0], 1], 2]},
    ],
    "results": [{"argument": 3}, {"buffer": 1}],
    "launches": [
        {
            "kernel": "prepare",
            "grid": ["ceildiv", ["dim", 0, 1], 16],
            "block": 128,
            "shared": 1024,
            "parameters": [{"argument": 0}, {"buffer": 0}, {"scalar": ["dim", 0, 1], "dtype": "i64"}],
        },
        {
            "kernel": "scan",
            "grid": ["mul", 4, ["sub", ["dim", 2, 0], 1]],
            "block": 256,
            "shared": 100000,
            "parameters": [{"argument": 3}, {"buffer": 1}, {"buffer": 0}, {"scalar": -3, "dtype": "i64"}],
        },
    ],
    "checks": [[["dim", 0, 1], ["dim", 1, 1]], [["dim", 0, 1], ["dim", 3, 1]]],
}


@pytest.fixture
def fake():
    return FakeDriver()


@pytest.fixture
def no_torch(monkeypatch):
    monkeypatch.setattr(launch, "loaded_torch", lambda: None)
    monkeypatch.setattr(arrays, "loaded_torch", lambda: None)


pytestmark = pytest.mark.usefixtures("no_torch")


def kernel(fake, **changes):
    return Kernel(Compiled(dict(MANIFEST, **changes), "ptx text"), driver=fake)


def arguments(fake, tokens=40, sequences=3, device=0):
    def array(shape, dtype):
        return arrays.DeviceArray(shape, dtype, device, fake)

    values = {
        "q": array((1, tokens, 2, 8), "bf16"),
        "gate": array((1, tokens, 4), "f32"),
        "offsets": array((sequences + 1,), "i32"),
        "o": array((1, tokens, 2, 8), "bf16"),
    }
    starts = [i * tokens // sequences for i in range(sequences + 1)]
    fake.write(values["offsets"].pointer, struct.pack(f"<{sequences + 1}i", *starts), 0)
    return values


# launches


def test_launch(fake):
    k, values = kernel(fake), arguments(fake)
    o, extra = k(**values, stream=99)
    assert o is values["o"]
    assert (extra.shape, extra.dtype) == ((3, 2), "i64")
    prepare, scan = fake.launches
    assert prepare[:6] == (0, "prepare", 3, 128, 1024, 99)
    assert scan[:6] == (0, "scan", 12, 256, 100000, 99)
    workspace = prepare[6][1]
    assert prepare[6] == [values["q"].pointer, workspace, 40]
    assert scan[6] == [o.pointer, extra.pointer, workspace, 2**64 - 3]
    assert len(fake.memory[workspace][1]) == 3 * 4 * 4
    assert fake.shared == {"scan": 100000}
    assert fake.loaded == [(0, "ptx text")]
    assert fake.active == []


def test_launches_that_may_overlap(fake):
    launches = [dict(entry, overlaps=entry["kernel"] == "scan") for entry in MANIFEST["launches"]]
    k, values = kernel(fake, launches=launches), arguments(fake)
    k(**values, stream=99)
    assert [name for _, name, *_ in fake.launches] == ["prepare", "scan"]
    assert fake.overlapping == ["scan"]


@pytest.mark.parametrize(("tokens", "names"), [(40, ["scan"]), (0, [])])
def test_beside_a_launch_that_has_blocks(fake, tokens, names):
    launches = [dict(entry, beside=True) for entry in MANIFEST["launches"]]
    kernel(fake, launches=launches)(**arguments(fake, tokens))
    assert [entry[1] for entry in fake.launches] == ["prepare", "scan"][-1 - len(names) :]
    assert fake.overlapping == names


def test_results_are_fresh_and_workspaces_are_kept(fake):
    k, values = kernel(fake), arguments(fake)
    _, first = k(**values)
    address = first.pointer
    _, second = k(**values)
    assert second.pointer != address
    assert fake.launches[0][6][1] == fake.launches[2][6][1]
    del first, second
    gc.collect()
    assert len(fake.freed) == 2


def test_workspaces_grow_and_old_ones_stay(fake):
    k = kernel(fake)
    k(**arguments(fake, tokens=40))
    k(**arguments(fake, tokens=400))
    k(**arguments(fake, tokens=40))
    small, large, again = (fake.launches[i][6][1] for i in (0, 2, 4))
    assert small != large == again
    assert small in fake.memory
    k.close()
    assert small not in fake.memory
    assert large not in fake.memory


def test_workspaces_differ_by_stream(fake):
    k, values = kernel(fake), arguments(fake)
    k(**values, stream=1)
    k(**values, stream=2)
    assert fake.launches[0][6][1] != fake.launches[2][6][1]


def test_own_workspaces(fake):
    k, values = kernel(fake), arguments(fake)
    assert k.workspace_bytes(**values) == [48, 48]
    mine = arrays.DeviceArray((12,), "f32", 0, fake)
    out = arrays.DeviceArray((3, 2), "i64", 0, fake)
    _, extra = k(**values, workspaces=[mine, out])
    assert extra is out
    assert fake.launches[0][6][1] == mine.pointer
    assert fake.launches[1][6][1] == out.pointer
    with pytest.raises(ValueError, match="2 buffers, but 1 were passed"):
        k(**values, workspaces=[mine])
    small = arrays.DeviceArray((11,), "f32", 0, fake)
    with pytest.raises(ValueError, match="workspace 0 of forward must be 48 contiguous, aligned bytes; it has 44"):
        k(**values, workspaces=[small, None])


def test_capture_needs_prepared_workspaces(fake):
    k, values = kernel(fake, results=[{"argument": 3}]), arguments(fake)
    fake.is_capturing = True
    with pytest.raises(CudaError, match=r"48 bytes of workspace.*prepare\(\)"):
        k(**values)
    fake.is_capturing = False
    k.prepare(**values)
    assert fake.launches == []
    fake.is_capturing = True
    k(**values)
    assert len(fake.launches) == 2


def test_preload(fake):
    k = kernel(fake)
    k.preload()
    k.preload(1)
    k(**arguments(fake, device=1))
    assert [entry[0] for entry in fake.loaded] == [0, 1]


def test_same_call_again_reads_the_new_contents(fake):
    k, values = kernel(fake, results=[{"argument": 3}]), arguments(fake)
    k(**values)
    k(**values)
    assert fake.launches[:2] == fake.launches[2:]
    other = arguments(fake)
    k(**other)
    assert fake.launches[4][6][0] == other["q"].pointer


def test_calls_in_turn_are_prepared_once(fake, monkeypatch):
    monkeypatch.setattr(launch, "_KEPT_CALLS", 2)
    call = kernel(fake, results=[{"argument": 3}])
    prepared = []
    prepare = call._prepare
    monkeypatch.setattr(call, "_prepare", lambda arguments: prepared.append(1) or prepare(arguments))
    first, second, third = arguments(fake), arguments(fake), arguments(fake)
    for values in (first, second, first, second):
        call(**values)
    assert len(prepared) == 2
    assert [launched[-1][0] for launched in fake.launches[::2]] == [x["q"].pointer for x in (first, second)] * 2
    for values in (third, second, first):
        call(**values)
    # The third put out the first, which was prepared longest ago.
    assert len(prepared) == 4
    assert len(call._prepared) == 2


def test_device_of_the_arguments(fake):
    k = kernel(fake)
    k(**arguments(fake, device=1))
    k(**arguments(fake, device=0))
    assert [entry[0] for entry in fake.launches] == [1, 1, 0, 0]
    assert [entry[0] for entry in fake.loaded] == [1, 0]


def test_no_tokens_skip_the_launch(fake):
    k = kernel(fake)
    k(**arguments(fake, tokens=0))
    assert [entry[1] for entry in fake.launches] == ["scan"]
    assert fake.launches[0][6][2] == 0


def test_positional_and_named(fake):
    k, values = kernel(fake), arguments(fake)
    k(values["q"], values["gate"], offsets=values["offsets"], o=values["o"])
    with pytest.raises(TypeError, match="lacks the arguments offsets, o; it takes q, gate, offsets, o"):
        k(values["q"], values["gate"])
    with pytest.raises(TypeError, match="takes 4 arguments"):
        k(*[values["q"]] * 5)
    with pytest.raises(TypeError, match="no argument 'beta'"):
        k(*list(values.values())[:3], beta=values["o"])
    with pytest.raises(TypeError, match="'q' of forward is given twice"):
        k(*values.values(), q=values["q"])


def test_result_forms(fake):
    values = arguments(fake)
    assert kernel(fake, results=[])(**values) is None
    assert kernel(fake, results=[{"argument": 3}])(**values) is values["o"]


def test_streams(fake):
    class Torchlike:
        cuda_stream = 11

    class Cupylike:
        ptr = 12

    class Protocol:
        def __cuda_stream__(self):
            return 0, 13

    k, values = kernel(fake), arguments(fake)
    for stream in (None, 10, Torchlike(), Cupylike(), Protocol()):
        k(**values, stream=stream)
    assert [entry[5] for entry in fake.launches[::2]] == [0, 10, 11, 12, 13]
    with pytest.raises(TypeError, match="stream of type str"):
        k(**values, stream="main")


# refusals; none may launch


def refused(fake, change, error, message, **changes):
    values = arguments(fake)
    values.update(change)
    with pytest.raises(error, match=message):
        kernel(fake, **changes)(**values)
    assert fake.launches == []


def test_wrong_dtype(fake):
    array = arrays.DeviceArray((1, 40, 2, 8), "f32", 0, fake)
    refused(fake, {"q": array}, TypeError, "argument 'q' has element type f32; forward needs bf16")


def test_wrong_shape(fake):
    array = arrays.DeviceArray((1, 40, 3), "f32", 0, fake)
    message = r"argument 'gate' has shape \[1, 40, 3\]; forward needs \[1, \?, 4\]"
    refused(fake, {"gate": array}, ValueError, message)


def test_wrong_rank(fake):
    array = arrays.DeviceArray((1, 40, 4, 1), "f32", 0, fake)
    refused(fake, {"gate": array}, ValueError, r"'gate' has shape \[1, 40, 4, 1\]")


def test_dynamic_sizes_must_agree(fake):
    array = arrays.DeviceArray((1, 39, 4), "f32", 0, fake)
    refused(fake, {"gate": array}, ValueError, "forward: size 1 of 'q' is 40, but size 1 of 'gate' is 39")


def test_other_device(fake):
    array = arrays.DeviceArray((1, 40, 4), "f32", 1, fake)
    refused(fake, {"gate": array}, ValueError, "argument 'gate' is on device 1, but 'q' is on 0")


def test_host_array(fake):
    refused(fake, {"gate": OnTheHost()}, TypeError, "argument 'gate' is on the CPU")


def test_no_array(fake):
    refused(fake, {"gate": [1.0]}, TypeError, "argument 'gate' of type list is no device array")


def foreign(fake, **options):
    fake.memory[options.get("pointer", 0x1000)] = (0, b"")
    return Foreign((1, 40, 4), options.pop("typestr", "<f4"), **options)


def test_not_contiguous(fake):
    array = foreign(fake, strides=(4 * 160, 4, 4 * 40))
    refused(fake, {"gate": array}, ValueError, r"'gate' of shape \[1, 40, 4\] is not contiguous")


def test_not_aligned(fake):
    refused(fake, {"gate": foreign(fake, pointer=0x1004)}, ValueError, "'gate' lies at 0x1004; forward needs 16-byte")


def test_foreign_dtype(fake):
    refused(fake, {"gate": foreign(fake, typestr="<f8")}, TypeError, "'gate' has element type <f8")


def test_read_only_destination(fake):
    fake.memory[0x1000] = (0, b"")
    array = Foreign((1, 40, 2, 8), "<V2", readonly=True)
    refused(fake, {"o": array}, ValueError, "'o' is read-only, but forward writes to it")


def test_destination_over_an_input(fake):
    values = arguments(fake)
    refused(fake, {"q": values["q"], "o": values["q"]}, ValueError, "'o', which forward writes, overlaps 'q'")


def test_too_large_grid(fake):
    launches = [dict(MANIFEST["launches"][0], grid=["mul", ["dim", 0, 1], 2**31])]
    refused(fake, {}, ValueError, f"would need a grid of {40 * 2**31} blocks", launches=launches)


def test_wrong_target(fake):
    fake.sm = (8, 0)
    refused(fake, {}, CudaError, "compiled for sm_90a, but device 0 has compute capability 8.0")


def test_out_of_memory(fake):
    values = arguments(fake)
    fake.out_of_memory = True
    with pytest.raises(CudaError, match="workspace 0 of forward, 48 bytes: .*OUT_OF_MEMORY"):
        kernel(fake)(**values)
    assert fake.launches == []


def test_validate_reads_the_offsets(fake):
    k, values = kernel(fake), arguments(fake)
    k(**values, validate=True)
    fake.write(values["offsets"].pointer, struct.pack("<4i", 0, 20, 13, 40), 0)
    with pytest.raises(ValueError, match="offsets decrease from 20 to 13 at entry 2"):
        k(**values, validate=True)
    fake.write(values["offsets"].pointer, struct.pack("<4i", 0, 13, 20, 41), 0)
    with pytest.raises(ValueError, match="offsets end at 41, but there are 40 tokens"):
        k(**values, validate=True)
    assert len(fake.launches) == 2


def test_validate_reads_the_slots(fake):
    declared = [
        *MANIFEST["arguments"],
        {"name": "slots", "dtype": "i64", "shape": [None]},
        {"name": "state", "dtype": "f32", "shape": [None, 4]},
    ]
    k, values = kernel(fake, arguments=declared), arguments(fake)
    values["slots"] = arrays.DeviceArray((3,), "i64", 0, fake)
    values["state"] = arrays.DeviceArray((5, 4), "f32", 0, fake)
    for slots, message in (
        ((4, -1, -1), None),
        ((5, -1, 0), "slot 5 of sequence 0 is not in a pool of 5 states"),
        ((1, 3, 1), "sequences 0 and 2 have the same slot 1"),
    ):
        fake.write(values["slots"].pointer, struct.pack("<3q", *slots), 0)
        if message is None:
            k(**values, validate=True)
            continue
        with pytest.raises(ValueError, match=message):
            k(**values, validate=True)
    assert len(fake.launches) == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "manifest version 2"),
        ({"arguments": [{"name": "q", "dtype": "f64", "shape": []}]}, "unknown element type 'f64'"),
        ({"launches": [{"kernel": "k"}]}, "malformed manifest of 'forward'"),
        ({"results": [{"argument": 4}]}, "a result of 'forward' is argument 4"),
        ({"launches": [dict(MANIFEST["launches"][0], parameters=[{"buffer": 2}])]}, "uses buffer 2"),
        ({"launches": [dict(MANIFEST["launches"][0], parameters=[{"what": 2}])]}, "unknown kind"),
        ({"launches": [dict(MANIFEST["launches"][0], parameters=[{"scalar": 1, "dtype": "f32"}])]}, "only i64"),
    ],
)
def test_bad_manifests(fake, changes, message):
    with pytest.raises(ManifestError, match=message):
        kernel(fake, **changes)


# arrays of other libraries


def test_interface_of_a_slice(fake):
    array = foreign(fake, strides=(9999, 16, 4))
    kernel(fake)(**dict(arguments(fake), gate=array))
    assert len(fake.launches) == 2


def test_interface_stream_is_waited_for(fake):
    values = arguments(fake)
    values["gate"] = foreign(fake, stream=5)
    kernel(fake)(**values, stream=7)
    assert fake.waits == [(7, 1), (7, 5), (7, 1), (7, 1)]
    fake.waits.clear()
    kernel(fake)(**values, stream=5)
    assert (5, 5) not in fake.waits


class Capsule:
    """Exports an array through DLPack only."""

    def __init__(self, array, kind=2):
        self.array, self.streams, self.kind = array, [], kind

    def __dlpack_device__(self):
        return self.kind, self.array.device

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return self.array.__dlpack__(stream=stream)


def test_dlpack(fake):
    values = {name: Capsule(array) for name, array in arguments(fake).items()}
    o, _ = kernel(fake)(**values, stream=7)
    assert o is values["o"]
    assert fake.launches[0][6][0] == values["q"].array.pointer
    assert values["q"].streams == [7]
    kernel(fake)(**values)
    assert values["q"].streams == [7, 1]
    gc.collect()
    assert arrays._exported == {}


def test_dlpack_dtype(fake):
    array = Capsule(arrays.DeviceArray((1, 40, 4), "i64", 0, fake))
    refused(fake, {"gate": array}, TypeError, "'gate' has element type i64; forward needs f32")


def test_dlpack_of_numpy_is_refused(fake):
    numpy = pytest.importorskip("numpy")
    refused(fake, {"gate": numpy.zeros((1, 40, 4), "f4")}, TypeError, "argument 'gate' is on the CPU")


def test_exported_array_lives_as_long_as_its_capsule(fake):
    array = arrays.DeviceArray((4,), "bf16", 0, fake)
    address = array.pointer
    capsule = array.__dlpack__()
    del array
    gc.collect()
    assert address in fake.memory
    del capsule
    gc.collect()
    assert address not in fake.memory


def test_consumed_capsule_is_freed_by_its_deleter(fake):
    array = arrays.DeviceArray((4,), "bf16", 0, fake)
    address = array.pointer
    capsule = array.__dlpack__()
    del array
    pointer = arrays._get_pointer(capsule, arrays._NAME)
    set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_SetName", ctypes.pythonapi)
    )
    used = b"used_dltensor"
    set_name(capsule, used)
    managed = ctypes.cast(pointer, ctypes.POINTER(arrays._DLManagedTensor))
    deleter = arrays._DELETER(managed.contents.deleter)
    del capsule
    gc.collect()
    assert address in fake.memory
    deleter(managed)
    gc.collect()
    assert address not in fake.memory


def test_device_array_copies(fake):
    array = arrays.DeviceArray.from_bytes(b"abcdefgh", (2, 2), "f16", 1, fake)
    assert array.tobytes() == b"abcdefgh"
    assert array.__dlpack_device__() == (2, 1)
    with pytest.raises(ValueError, match=r"7 bytes do not fill shape \(2, 2\) of f16 \(8 bytes\)"):
        arrays.DeviceArray.from_bytes(b"abcdefg", (2, 2), "f16", 0, fake)


@pytest.mark.parametrize(
    ("shape", "strides", "dense"),
    [
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), False),
        ((1, 3), (99, 1), True),
        ((2, 1, 3), (3, 99, 1), True),
        ((2, 0, 3), (7, 7, 7), True),
        ((3,), (2,), False),
        ((), (), True),
        ((2, 3), (6, 2), False),
    ],
)
def test_contiguity(shape, strides, dense):
    assert arrays.contiguous(shape, strides) is dense


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((8, 0), "sm_80"),
        ((8, 6), "sm_86"),
        ((8, 7), "sm_86"),
        ((8, 9), "sm_89"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100"),
        ((10, 3), "sm_100"),
        ((12, 0), "sm_120"),
        ((12, 1), "sm_120"),
    ],
)
def test_device_target(capability, target):
    assert launch.device_target(0, FakeDriver(capability=capability)) == target


def test_old_device_has_no_target():
    with pytest.raises(CudaError, match=r"compute capability 7\.5; 8\.0 is needed"):
        launch.device_target(0, FakeDriver(capability=(7, 5)))


def test_missing_driver():
    from gdn.driver import Driver

    with pytest.raises(CudaError, match=r"no CUDA driver: libnone\.so cannot be loaded"):
        Driver("libnone.so")
