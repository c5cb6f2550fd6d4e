// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for libcuda: host memory, two devices, and a log of the calls with
// their arguments as the driver would see them. See test_driver.py.
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

typedef uintptr_t handle;

static char text[1 << 16];
static size_t used;
static handle stack[8];
static int depth;
static int failing;

static int logged(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  used += vsnprintf(text + used, sizeof text - used, format, arguments);
  va_end(arguments);
  int status = failing;
  failing = 0;
  return status;
}

const char *mock_log(void) { return text; }
void mock_reset(void) { used = 0, text[0] = 0; }
void mock_fail(int status) { failing = status; }

int cuInit(unsigned flags) { return flags; }
int cuDeviceGetCount(int *count) { return *count = 2, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal + 70, ordinal >= 2 ? 101 : 0; }
int cuDeviceGetName(char *name, int size, int device) { return snprintf(name, size, "mock %d", device), 0; }
static int driver_version = 13000;
void mock_version(int version) { driver_version = version; }
int cuDriverGetVersion(int *version) { return *version = driver_version, 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  return *value = device < 70 ? -1 : attribute == 75 ? 9 : attribute == 76 ? 0 : -1, 0;
}
int cuDevicePrimaryCtxRetain(handle *context, int device) {
  *context = 0xC0FFEE0000000000u + device - 70;
  return logged("retain %d\n", device - 70);
}
int cuCtxGetCurrent(handle *context) { return *context = depth ? stack[depth - 1] : 0, 0; }
int cuCtxGetDevice(int *device) { return *device = (int)(stack[depth - 1] & 0xFF), 0; }
int cuCtxPushCurrent_v2(handle context) { return stack[depth++] = context, logged("push %d\n", (int)(context & 0xFF)); }
int cuCtxPopCurrent_v2(handle *context) { return *context = stack[--depth], logged("pop\n"); }

int cuModuleLoadDataEx(handle *module, const char *ptx, unsigned count, int *options, void **values) {
  if (strstr(ptx, "nonsense") && count >= 2 && options[0] == 5 && options[1] == 6) {
    snprintf(values[0], (size_t)values[1], "ptxas error: line 4: nonsense");
    return 218;
  }
  *module = 0xABCD00000001u;
  logged("load %zu bytes", strlen(ptx));
  for (unsigned i = 2; i < count; ++i)
    logged(", option %d = %zu", options[i], (size_t)values[i]);
  return logged("\n");
}
int cuModuleUnload(handle module) { return logged("unload %zx\n", module); }
int cuModuleGetFunction(handle *function, handle module, const char *name) {
  *function = module + strlen(name);
  return strcmp(name, "absent") ? 0 : 500;
}
int cuFuncSetAttribute(handle function, int attribute, int value) {
  return logged("attribute %d of %zx = %d\n", attribute, function, value);
}
int cuLaunchKernel(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, handle stream, void **parameters, void **extra) {
  logged("launch %zx grid %u %u %u block %u %u %u shared %u stream %zx extra %p:", function, gx, gy, gz, bx, by, bz,
         shared, stream, (void *)extra);
  for (int i = 0; i < 3; ++i)
    if (memcmp(parameters[i], "map of ", 7) == 0)
      logged(" (%s)", (char *)parameters[i]);
    else
      logged(" %lld", (long long)*(int64_t *)parameters[i]);
  logged("\n");
  return gx ? 0 : 1;
}

struct config {
  unsigned grid[3], block[3], shared;
  handle stream;
  int *attributes;
  unsigned count;
};
int cuLaunchKernelEx(struct config *c, handle function, void **parameters, void **extra) {
  logged("attributes %u: %d = %d; ", c->count, c->attributes[0], c->attributes[2]);
  return cuLaunchKernel(function, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared,
                        c->stream, parameters, extra);
}

int cuTensorMapEncodeTiled(char *map, int type, uint32_t rank, uint64_t pointer, const uint64_t *sizes,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill) {
  snprintf(map, 128, "map of %llx", (unsigned long long)pointer);
  logged("encode type %d swizzle %d promotion %d, %d %d, aligned %d:", type, swizzle, promotion, interleave, fill,
         (uintptr_t)map % 64 == 0);
  for (uint32_t i = 0; i < rank; ++i)
    logged(" %llu by %llu of %u step %u", (unsigned long long)sizes[i],
           (unsigned long long)(i ? strides[i - 1] : 0), box[i], steps[i]);
  return logged("\n"), strides[0] % 16 ? 1 : 0;
}

// Mapped, not from the heap, which lies below 4 GiB in some Python builds; the
// page in front has the size.
int cuMemAlloc_v2(uint64_t *pointer, size_t size) {
  if (size > 1u << 30)
    return 2;
  size_t *pages = mmap(NULL, PAGE + size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *pages = PAGE + size;
  return *pointer = (uint64_t)(uintptr_t)pages + PAGE, logged("allocate %zu\n", size);
}
int cuMemFree_v2(uint64_t pointer) {
  if (pointer) {
    size_t *pages = (size_t *)(uintptr_t)(pointer - PAGE);
    munmap(pages, *pages);
  }
  return logged("free\n");
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, handle stream) {
  return memcpy(to, (void *)(uintptr_t)from, size), logged("read %zu in %zx\n", size, stream);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, void *from, size_t size, handle stream) {
  return memcpy((void *)(uintptr_t)to, from, size), logged("write %zu in %zx\n", size, stream);
}
int cuStreamSynchronize(handle stream) { return logged("synchronize %zx\n", stream); }
int cuStreamIsCapturing(handle stream, int *status) { return *status = stream == 0x77, 0; }
int cuStreamWaitEvent(handle stream, handle event, unsigned flags) {
  return logged("wait %zx for %zx %u\n", stream, event, flags);
}
int cuEventCreate(handle *event, unsigned flags) { return *event = 0xE000000000u + flags, 0; }
int cuEventRecord(handle event, handle stream) { return logged("record %zx in %zx\n", event, stream); }
int cuEventDestroy_v2(handle event) { return logged("destroy %zx\n", event); }
int cuPointerGetAttribute(int *value, int attribute, uint64_t pointer) {
  return *value = attribute == 9 && pointer > UINT32_MAX, 0;
}

int cuGetErrorName(int status, const char **name) {
  *name = status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : status == 218 ? "CUDA_ERROR_INVALID_PTX" : "CUDA_ERROR_MOCK";
  return status == 999 ? (*name = NULL, 1) : 0;
}
int cuGetErrorString(int status, const char **string) { return *string = "text", 0; }
