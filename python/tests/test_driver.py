# Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""gdn.driver and the launcher above it against a mock of libcuda: what the driver sees of each call."""

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import gdn
from gdn import DeviceArray, arrays, launch
from gdn.compile import Compiled
from gdn.driver import CudaError, Driver
from tool_paths import skip_or_fail

MODULE = 0xABCD00000001


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = next((c for c in ("cc", "gcc", "clang", "clang-22") if shutil.which(c)), None)
    if compiler is None:
        skip_or_fail("no C compiler (cc, gcc, clang) for the mock of libcuda")
    path = tmp_path_factory.mktemp("mock") / "libmock.so"
    source = Path(__file__).with_name("mock_cuda.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(path), str(source)], check=True, timeout=120)
    return path


@pytest.fixture
def mock(library):
    handle = ctypes.CDLL(str(library))
    handle.mock_log.restype = ctypes.c_char_p
    handle.mock_reset()
    return handle


@pytest.fixture
def driver(library, mock, monkeypatch):
    monkeypatch.setattr(launch, "loaded_torch", lambda: None)
    monkeypatch.setattr(arrays, "loaded_torch", lambda: None)
    return Driver(str(library))


def log(mock):
    lines = mock.mock_log().decode().splitlines()
    mock.mock_reset()
    return lines


def test_device_facts(driver):
    assert driver.device_count() == 2
    assert driver.device_name(1) == "mock 71"
    assert driver.capability(0) == (9, 0)
    assert driver.version() == 13000
    assert driver.current_device() == 0
    assert gdn.device_target(1, driver) == "sm_90a"
    with pytest.raises(CudaError, match=r"cuDeviceGet failed: CUDA_ERROR_MOCK \(text\)"):
        driver.capability(2)


def test_contexts_are_pushed_where_they_are_not_current(driver, mock):
    with driver.on(1):
        assert driver.current_device() == 1
        with driver.on(1):
            assert driver.current_device() == 1
        with driver.on(0):
            assert driver.current_device() == 0
        assert driver.current_device() == 1
    with driver.on(1):
        pass
    assert log(mock) == ["retain 1", "push 1", "retain 0", "push 0", "pop", "pop", "push 1", "pop"]


def test_context_is_popped_after_an_error(driver, mock):
    with pytest.raises(KeyError), driver.on(0):
        raise KeyError
    assert log(mock) == ["retain 0", "push 0", "pop"]


def test_kernels_of_a_module_are_compiled_side_by_side(driver, mock, monkeypatch):
    """Where the driver can: an option that it does not know would be an error."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    one, three = (".visible .entry a() {}\n" * count for count in (1, 3))
    for ptx in (one, three):
        driver.load(ptx, "forward")
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    driver.load(three, "forward")
    mock.mock_version(12090)
    try:
        driver.load(three, "forward")
    finally:
        mock.mock_version(13000)
    sizes = [len(one), len(three)]
    expected = [f"{sizes[0]} bytes", *(f"{sizes[1]} bytes, option 34 = {n}" for n in (3, 2)), f"{sizes[1]} bytes"]
    assert log(mock) == [f"load {line}" for line in expected]


def test_load_shows_the_log_of_the_driver(driver):
    message = r"(?s)loading forward: cuModuleLoadDataEx failed: CUDA_ERROR_INVALID_PTX \(text\)\nptxas error: line 4"
    with pytest.raises(CudaError, match=message):
        driver.load("nonsense", "forward")
    with pytest.raises(CudaError, match="kernel absent: cuModuleGetFunction failed"):
        driver.function(MODULE, "absent")


def test_unknown_errors_keep_their_number(driver, mock):
    mock.mock_fail(999)
    with pytest.raises(CudaError, match="cuMemFree_v2 failed: error 999"):
        driver.free(0)


def test_memory(driver, mock):
    array = DeviceArray.from_bytes(b"01234567", (2, 2), "bf16", 1, driver)
    assert array.pointer > 2**32
    assert array.tobytes() == b"01234567"
    del array
    lines = [line for line in log(mock) if line.split()[0] not in ("retain", "push", "pop")]
    assert lines == ["allocate 8", "write 8 in 0", "synchronize 0", "read 8 in 0", "synchronize 0", "free"]
    with pytest.raises(CudaError, match=r"a device array, 2147483648 bytes: cuMemAlloc_v2 failed: CUDA_ERROR_OUT_OF_M"):
        DeviceArray((2**30,), "bf16", 0, driver)


def test_wait_orders_streams(driver, mock):
    driver.wait(0xA0000000B, 0xC)
    assert log(mock) == ["record e000000002 in c", "wait a0000000b for e000000002 0", "destroy e000000002"]


def test_capturing(driver):
    assert driver.capturing(0x77)
    assert not driver.capturing(0)


def test_pointer_device(driver):
    assert driver.pointer_device(2**40) == 1


def launch_manifest():
    return {
        "version": 1,
        "target": "sm_80",
        "function": "f",
        "ptx": "f.ptx",
        "arguments": [{"name": "x", "dtype": "f32", "shape": [None, 4]}],
        "buffers": [{"dtype": "f32", "shape": [["dim", 0, 0]]}],
        "results": [{"argument": 0}],
        "launches": [
            {
                "kernel": "kernel",
                "grid": ["mul", ["dim", 0, 0], 7],
                "block": 128,
                "shared": 200000,
                "parameters": [{"argument": 0}, {"buffer": 0}, {"scalar": ["sub", 0, ["dim", 0, 0]]}],
            }
        ],
    }


def test_launch_as_the_driver_sees_it(driver, mock):
    kernel = gdn.Kernel(Compiled(launch_manifest(), "ptx"), driver=driver)
    x = DeviceArray((3, 4), "f32", 1, driver)
    mock.mock_reset()
    assert kernel(x, stream=0x123456789A) is x
    lines = log(mock)
    workspace = kernel._workspaces[(1, 0x123456789A, 0)][0].pointer
    function = f"{MODULE + len('kernel'):x}"
    assert "load 3 bytes" in lines
    assert f"attribute 8 of {function} = 200000" in lines
    assert lines[-2] == (
        f"launch {function} grid 21 1 1 block 128 1 1 shared 200000 stream 123456789a extra (nil): "
        f"{x.pointer} {workspace} -3"
    )
    assert lines[-1] == "pop"
    kernel.close()
    assert f"unload {MODULE:x}" in log(mock)


@pytest.mark.parametrize("missing", [None, "symbol", "version"])
def test_launch_that_may_overlap(library, mock, monkeypatch, missing):
    monkeypatch.setattr(launch, "loaded_torch", lambda: None)
    monkeypatch.setattr(arrays, "loaded_torch", lambda: None)
    if missing == "symbol":
        monkeypatch.setattr("gdn.driver._LAUNCH_EX", "cuLaunchKernelFuture")
    if missing == "version":
        monkeypatch.setattr("gdn.driver._OVERLAP_VERSION", 13010)
    driver = Driver(str(library))
    manifest = launch_manifest()
    manifest["launches"][0]["overlaps"] = True
    kernel = gdn.Kernel(Compiled(manifest, "ptx"), driver=driver)
    x = DeviceArray((3, 4), "f32", 1, driver)
    mock.mock_reset()
    kernel(x, stream=0x123456789A)
    line = log(mock)[-2]
    attribute = "" if missing else "attributes 1: 6 = 1; "
    assert line.startswith(f"{attribute}launch {MODULE + len('kernel'):x} grid 21 1 1 block 128 1 1 shared 200000 ")
    workspace = kernel._workspaces[(1, 0x123456789A, 0)][0].pointer
    assert line.endswith(f"stream 123456789a extra (nil): {x.pointer} {workspace} -3")


def tensor_map_manifest(row=4096):
    entry = {
        "tensor_map": {"argument": 0},
        "dtype": "bf16",
        "sizes": [128, ["dim", 0, 0], 2, 16],
        "strides": [row, 128, 256],
        "box": [64, 32, 2, 1],
        "swizzle": 128,
    }
    launch = {"kernel": "kernel", "grid": 1, "block": 32, "shared": 0}
    return {
        "version": 1,
        "target": "sm_90a",
        "function": "f",
        "ptx": "f.ptx",
        "arguments": [{"name": "x", "dtype": "bf16", "shape": [None, 16, 128]}],
        "buffers": [],
        "results": [],
        "launches": [dict(launch, parameters=[{"argument": 0}, entry, {"scalar": 5}])],
    }


def test_tensor_map_as_the_driver_sees_it(driver, mock):
    kernel = gdn.Kernel(Compiled(tensor_map_manifest(), "ptx"), driver=driver)
    x = DeviceArray((3, 16, 128), "bf16", 1, driver)
    mock.mock_reset()
    kernel(x, stream=0)
    lines = log(mock)
    assert lines[-3] == (
        "encode type 9 swizzle 3 promotion 2, 0 0, aligned 1: 128 by 0 of 64 step 1 3 by 4096 of 32 step 1 "
        "2 by 128 of 2 step 1 16 by 256 of 1 step 1"
    )
    assert lines[-2].endswith(f": {x.pointer} (map of {x.pointer:x}) 5")


def test_tensor_map_that_the_driver_refuses(driver, mock):
    kernel = gdn.Kernel(Compiled(tensor_map_manifest(row=4104), "ptx"), driver=driver)
    x = DeviceArray((3, 16, 128), "bf16", 1, driver)
    with pytest.raises(CudaError, match="argument 'x' of f: cuTensorMapEncodeTiled failed: CUDA_ERROR_MOCK"):
        kernel(x, stream=0)
    assert not any(line.startswith("launch") for line in log(mock))


def test_driver_without_tensor_maps(driver, monkeypatch):
    kernel = gdn.Kernel(Compiled(tensor_map_manifest(), "ptx"), driver=driver)
    x = DeviceArray((3, 16, 128), "bf16", 1, driver)
    monkeypatch.setattr("gdn.driver._ENCODE", "cuTensorMapEncodeFuture")
    with pytest.raises(CudaError, match="argument 'x' of f: the driver has no cuTensorMapEncodeFuture; CUDA 12"):
        kernel(x, stream=0)


def test_failed_launch_names_the_kernel(driver, mock):
    parameters = launch._Parameters([1, 2, 3])
    mock.mock_reset()
    with pytest.raises(
        CudaError, match="kernel scan, grid 0, block 32, 64 bytes of shared memory: cuLaunchKernel failed"
    ):
        driver.launch(MODULE, 0, 32, 64, 0, parameters, "scan")
