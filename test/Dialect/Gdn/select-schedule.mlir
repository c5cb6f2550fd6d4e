// RUN: gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-select-schedule{target=cpu}))" | FileCheck %s --check-prefix=CPU
// RUN: gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-select-schedule{target=sm_90a}))" | FileCheck %s --check-prefix=SM90
// RUN: gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-select-schedule{target=sm_89}))" | FileCheck %s --check-prefix=SM89
// RUN: not gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-select-schedule{target=sm_70}))" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-select-schedule{target=sm_90a precision=high}))" | FileCheck %s --check-prefix=HIGH
// RUN: not gdn-opt %s -pass-pipeline="builtin.module(func.func(gdn-select-schedule{precision=low}))" 2>&1 | FileCheck %s --check-prefix=LOW

// LOW: unknown precision 'low'; it is default or high
// UNKNOWN: unknown target 'sm_70'; the targets are cpu, sm_80, sm_86, sm_89, sm_90a, sm_100, sm_120

// One head leaves most of a GPU idle: long sequences are cut into segments.

// CPU-LABEL: func @prefill
// CPU: schedule = #gdn.schedule<phases = fused, chunk = 32, value_block = 128>
// SM90-LABEL: func @prefill
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 32, segment_chunks = 5>
// SM89-LABEL: func @prefill
// SM89: schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 64, stages = 2>
func.func @prefill(%q: tensor<1x?x1x128xbf16>, %b: tensor<1x?x1xf32>, %s: tensor<1x1x128x128xf32>)
    -> tensor<1x?x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>)
      beta(%b : tensor<1x?x1xf32>)
      outs(%q, %s : tensor<1x?x1x128xbf16>, tensor<1x1x128x128xf32>) -> tensor<1x?x1x128xbf16>, tensor<1x1x128x128xf32>
  return %0#0 : tensor<1x?x1x128xbf16>
}

// As many segments as give each of 132 multiprocessors a block, of which a head
// has two for each segment behind the first; none where that leaves a single
// sequence two segments.

// CPU-LABEL: func @more_heads
// SM90-LABEL: func @more_heads
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 5, segment_chunks = 5>
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 3, segment_chunks = 5>
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 3>
// HIGH-LABEL: func @more_heads
// HIGH: schedule = #gdn.schedule<phases = segmented, {{.*}}, segments = 5, segment_chunks = 5, {{.*}}precision = high
// HIGH: schedule = #gdn.schedule<phases = segmented, {{.*}}, segments = 3, segment_chunks = 5, {{.*}}precision = high
// HIGH: schedule = #gdn.schedule<phases = split, {{.*}}precision = high
// SM89-LABEL: func @more_heads
func.func @more_heads(%q: tensor<1x8192x16x128xbf16>, %s: tensor<1x16x128x128xf32>,
    %r: tensor<1x8192x33x128xbf16>, %t: tensor<1x33x128x128xf32>,
    %u: tensor<1x8192x34x128xbf16>, %w: tensor<1x34x128x128xf32>)
    -> (tensor<1x8192x16x128xbf16>, tensor<1x8192x33x128xbf16>, tensor<1x8192x34x128xbf16>) {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x8192x16x128xbf16>, tensor<1x8192x16x128xbf16>, tensor<1x8192x16x128xbf16>)
      outs(%q, %s : tensor<1x8192x16x128xbf16>, tensor<1x16x128x128xf32>) -> tensor<1x8192x16x128xbf16>, tensor<1x16x128x128xf32>
  %1:2 = gdn.recurrence ins(%r, %r, %r : tensor<1x8192x33x128xbf16>, tensor<1x8192x33x128xbf16>, tensor<1x8192x33x128xbf16>)
      outs(%r, %t : tensor<1x8192x33x128xbf16>, tensor<1x33x128x128xf32>) -> tensor<1x8192x33x128xbf16>, tensor<1x33x128x128xf32>
  %2:2 = gdn.recurrence ins(%u, %u, %u : tensor<1x8192x34x128xbf16>, tensor<1x8192x34x128xbf16>, tensor<1x8192x34x128xbf16>)
      outs(%u, %w : tensor<1x8192x34x128xbf16>, tensor<1x34x128x128xf32>) -> tensor<1x8192x34x128xbf16>, tensor<1x34x128x128xf32>
  return %0#0, %1#0, %2#0 : tensor<1x8192x16x128xbf16>, tensor<1x8192x33x128xbf16>, tensor<1x8192x34x128xbf16>
}

// With gates per channel the kernel in front of later segments has blocks of 64 rows: three segments pay in high
// precision only.

// CPU-LABEL: func @three_segments_of_channels
// SM90-LABEL: func @three_segments_of_channels
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>
// HIGH-LABEL: func @three_segments_of_channels
// HIGH: schedule = #gdn.schedule<phases = segmented, {{.*}}, segments = 3, segment_chunks = 5, {{.*}}precision = high
// SM89-LABEL: func @three_segments_of_channels
func.func @three_segments_of_channels(%q: tensor<1x8192x33x128xbf16>, %g: tensor<1x8192x33x128xf32>, %b: tensor<1x8192x33xf32>,
    %s: tensor<1x33x128x128xf32>) -> tensor<1x8192x33x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x8192x33x128xbf16>, tensor<1x8192x33x128xbf16>, tensor<1x8192x33x128xbf16>)
      gate(%g : tensor<1x8192x33x128xf32>) beta(%b : tensor<1x8192x33xf32>)
      outs(%q, %s : tensor<1x8192x33x128xbf16>, tensor<1x33x128x128xf32>) -> tensor<1x8192x33x128xbf16>, tensor<1x33x128x128xf32>
  return %0#0 : tensor<1x8192x33x128xbf16>
}

// Nor do three segments of fewer channels, of keys or of values: only those of 128 have blocks of 128 rows in front of later
// segments.

// CPU-LABEL: func @three_segments_of_fewer_keys
// SM90-LABEL: func @three_segments_of_fewer_keys
// SM90: schedule = #gdn.schedule<phases = split,
// HIGH-LABEL: func @three_segments_of_fewer_keys
// HIGH: segments = 3,
// SM89-LABEL: func @three_segments_of_fewer_keys
func.func @three_segments_of_fewer_keys(%q: tensor<1x8192x32x64xbf16>, %v: tensor<1x8192x32x128xbf16>, %s: tensor<1x32x128x64xf32>) -> tensor<1x8192x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x8192x32x64xbf16>, tensor<1x8192x32x64xbf16>, tensor<1x8192x32x128xbf16>)
      outs(%v, %s : tensor<1x8192x32x128xbf16>, tensor<1x32x128x64xf32>) -> tensor<1x8192x32x128xbf16>, tensor<1x32x128x64xf32>
  return %0#0 : tensor<1x8192x32x128xbf16>
}

// CPU-LABEL: func @three_segments_of_fewer_values
// SM90-LABEL: func @three_segments_of_fewer_values
// SM90: schedule = #gdn.schedule<phases = split,
// HIGH-LABEL: func @three_segments_of_fewer_values
// HIGH: segments = 3,
// SM89-LABEL: func @three_segments_of_fewer_values
func.func @three_segments_of_fewer_values(%q: tensor<1x8192x32x128xbf16>, %v: tensor<1x8192x32x120xbf16>, %s: tensor<1x32x120x128xf32>) -> tensor<1x8192x32x120xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x8192x32x128xbf16>, tensor<1x8192x32x128xbf16>, tensor<1x8192x32x120xbf16>)
      outs(%v, %s : tensor<1x8192x32x120xbf16>, tensor<1x32x120x128xf32>) -> tensor<1x8192x32x120xbf16>, tensor<1x32x120x128xf32>
  return %0#0 : tensor<1x8192x32x120xbf16>
}

// So many blocks that those of 128 rows run all at once: nothing is cut.

// CPU-LABEL: func @fills_the_gpu
// SM90-LABEL: func @fills_the_gpu
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 3>
// SM89-LABEL: func @fills_the_gpu
func.func @fills_the_gpu(%q: tensor<4x8192x20x128xbf16>, %s: tensor<4x20x128x128xf32>) -> tensor<4x8192x20x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<4x8192x20x128xbf16>, tensor<4x8192x20x128xbf16>, tensor<4x8192x20x128xbf16>)
      outs(%q, %s : tensor<4x8192x20x128xbf16>, tensor<4x20x128x128xf32>) -> tensor<4x8192x20x128xbf16>, tensor<4x20x128x128xf32>
  return %0#0 : tensor<4x8192x20x128xbf16>
}

// CPU-LABEL: func @decode
// CPU: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 24>
// Few states: more warps, no room in the caches for them, and launches that overlap.
// SM90-LABEL: func @decode
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 16, warps = 8, streaming = true, overlap = true>
// SM89-LABEL: func @decode
// SM89: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 16, warps = 8, streaming = true>
func.func @decode(%q: tensor<4x1x1x24xf32>, %s: tensor<4x1x24x24xf32>) -> tensor<4x1x1x24xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<4x1x1x24xf32>, tensor<4x1x1x24xf32>, tensor<4x1x1x24xf32>)
      outs(%q, %s : tensor<4x1x1x24xf32>, tensor<4x1x24x24xf32>) -> tensor<4x1x1x24xf32>, tensor<4x1x24x24xf32>
  return %0#0 : tensor<4x1x1x24xf32>
}

// A large head keeps its state in registers in short chunks only.

// SM90-LABEL: func @large_head
// SM90: schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 64, stages = 3>
func.func @large_head(%q: tensor<1x?x1x256xbf16>, %s: tensor<1x1x256x256xf32>) -> tensor<1x?x1x256xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x256xbf16>, tensor<1x?x1x256xbf16>, tensor<1x?x1x256xbf16>)
      outs(%q, %s : tensor<1x?x1x256xbf16>, tensor<1x1x256x256xf32>) -> tensor<1x?x1x256xbf16>, tensor<1x1x256x256xf32>
  return %0#0 : tensor<1x?x1x256xbf16>
}

// A schedule written by hand stays.

// HIGH-LABEL: func @by_hand
// HIGH: schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>
// SM90-LABEL: func @by_hand
// SM90: schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>
func.func @by_hand(%q: tensor<1x?x1x16xbf16>, %s: tensor<1x1x16x16xf32>) -> tensor<1x?x1x16xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x16xbf16>, tensor<1x?x1x16xbf16>, tensor<1x?x1x16xbf16>)
      outs(%q, %s : tensor<1x?x1x16xbf16>, tensor<1x1x16x16xf32>)
      {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 16>}
      -> tensor<1x?x1x16xbf16>, tensor<1x1x16x16xf32>
  return %0#0 : tensor<1x?x1x16xbf16>
}

// CPU-LABEL: func @wide
// CPU: schedule = #gdn.schedule<phases = fused, chunk = 32, value_block = 256>
func.func @wide(%q: tensor<1x20x1x16xf32>, %v: tensor<1x20x1x400xf32>, %s: tensor<1x1x400x16xf32>) -> tensor<1x20x1x400xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x20x1x16xf32>, tensor<1x20x1x16xf32>, tensor<1x20x1x400xf32>)
      outs(%v, %s : tensor<1x20x1x400xf32>, tensor<1x1x400x16xf32>) -> tensor<1x20x1x400xf32>, tensor<1x1x400x16xf32>
  return %0#0 : tensor<1x20x1x400xf32>
}

// Chunks end where the checkpoints are.

// CPU-LABEL: func @checkpoints
// CPU: schedule = #gdn.schedule<phases = fused, chunk = 16, value_block = 128>
// SM90-LABEL: func @checkpoints
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 16, value_block = 64, stages = 3, segments = 32, segment_chunks = 5>
func.func @checkpoints(%q: tensor<1x?x1x128xbf16>, %s: tensor<1x1x128x128xf32>, %c: tensor<1x?x1x128x128xf32>) -> tensor<1x?x1x128x128xf32> {
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>)
      outs(%q, %s : tensor<1x?x1x128xbf16>, tensor<1x1x128x128xf32>) checkpoints(%c : tensor<1x?x1x128x128xf32>) {every = 48 : i64}
      -> tensor<1x?x1x128xbf16>, tensor<1x1x128x128xf32>, tensor<1x?x1x128x128xf32>
  return %0#2 : tensor<1x?x1x128x128xf32>
}

// Checkpoints between chunks: token by token, packed sequences too.

// CPU-LABEL: func @odd_checkpoints
// CPU: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 128>
// SM90-LABEL: func @odd_checkpoints
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>
func.func @odd_checkpoints(%q: tensor<1x?x1x128xbf16>, %cu: tensor<?xi32>, %s: tensor<?x1x128x128xf32>, %c: tensor<1x?x1x128x128xf32>) -> tensor<1x?x1x128x128xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>)
      offsets(%cu : tensor<?xi32>) initial(%s : tensor<?x1x128x128xf32>) outs(%q : tensor<1x?x1x128xbf16>)
      checkpoints(%c : tensor<1x?x1x128x128xf32>) {every = 24 : i64}
      -> tensor<1x?x1x128xbf16>, tensor<1x?x1x128x128xf32>
  return %0#1 : tensor<1x?x1x128x128xf32>
}

// Three stages of all tiles only where they fit, and where warps of their own
// fill them: not for value blocks that no warpgroup computes.

// SM90-LABEL: func @many_tiles
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 2, segments = 32, segment_chunks = 5>
func.func @many_tiles(%q: tensor<1x?x1x128xbf16>, %g: tensor<1x?x1x128xf32>, %b: tensor<1x?x1xf32>, %s: tensor<1x1x128x128xf32>)
    -> tensor<1x?x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>, tensor<1x?x1x128xbf16>)
      gate(%g : tensor<1x?x1x128xf32>) beta(%b : tensor<1x?x1xf32>)
      outs(%q, %s : tensor<1x?x1x128xbf16>, tensor<1x1x128x128xf32>) -> tensor<1x?x1x128xbf16>, tensor<1x1x128x128xf32>
  return %0#0 : tensor<1x?x1x128xbf16>
}

// SM90-LABEL: func @few_values
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 32, stages = 2>
func.func @few_values(%q: tensor<1x?x1x32xbf16>, %s: tensor<1x1x32x32xf32>) -> tensor<1x?x1x32xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x32xbf16>, tensor<1x?x1x32xbf16>, tensor<1x?x1x32xbf16>)
      outs(%q, %s : tensor<1x?x1x32xbf16>, tensor<1x1x32x32xf32>) -> tensor<1x?x1x32xbf16>, tensor<1x1x32x32xf32>
  return %0#0 : tensor<1x?x1x32xbf16>
}

// A number that is not known: both, from 129 float32 states on blocks of one warp.

// SM90-LABEL: func @decode_of_any
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 16, warps = 8, streaming = true, overlap = true, wide_from = 129>
func.func @decode_of_any(%q: tensor<?x1x1x128xbf16>, %s: tensor<?x1x128x128xf32>) -> tensor<?x1x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x1x1x128xbf16>, tensor<?x1x1x128xbf16>, tensor<?x1x1x128xbf16>)
      outs(%q, %s : tensor<?x1x1x128xbf16>, tensor<?x1x128x128xf32>) -> tensor<?x1x1x128xbf16>, tensor<?x1x128x128xf32>
  return %0#0 : tensor<?x1x1x128xbf16>
}

// 128 states are few, 129 are not.

// SM90-LABEL: func @decode_of_128
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 16, warps = 8, streaming = true, overlap = true>
func.func @decode_of_128(%q: tensor<128x1x1x128xbf16>, %s: tensor<128x1x128x128xf32>) -> tensor<128x1x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<128x1x1x128xbf16>, tensor<128x1x1x128xbf16>, tensor<128x1x1x128xbf16>)
      outs(%q, %s : tensor<128x1x1x128xbf16>, tensor<128x1x128x128xf32>) -> tensor<128x1x1x128xbf16>, tensor<128x1x128x128xf32>
  return %0#0 : tensor<128x1x1x128xbf16>
}

// SM90-LABEL: func @decode_of_129
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8, overlap = true>
// SM89-LABEL: func @decode_of_129
// SM89: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>
func.func @decode_of_129(%q: tensor<129x1x1x128xbf16>, %s: tensor<129x1x128x128xf32>) -> tensor<129x1x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<129x1x1x128xbf16>, tensor<129x1x1x128xbf16>, tensor<129x1x1x128xbf16>)
      outs(%q, %s : tensor<129x1x1x128xbf16>, tensor<129x1x128x128xf32>) -> tensor<129x1x1x128xbf16>, tensor<129x1x128x128xf32>
  return %0#0 : tensor<129x1x1x128xbf16>
}

// Of 16 bits, eight times as many are few.

// SM90-LABEL: func @decode_16bit_of_any
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 16, warps = 4, streaming = true, overlap = true, wide_from = 1025>
func.func @decode_16bit_of_any(%q: tensor<?x1x1x128xbf16>, %s: tensor<?x1x128x128xbf16>) -> tensor<?x1x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x1x1x128xbf16>, tensor<?x1x1x128xbf16>, tensor<?x1x1x128xbf16>)
      outs(%q, %s : tensor<?x1x1x128xbf16>, tensor<?x1x128x128xbf16>) -> tensor<?x1x1x128xbf16>, tensor<?x1x128x128xbf16>
  return %0#0 : tensor<?x1x1x128xbf16>
}

// SM90-LABEL: func @decode_16bit_of_1025
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8>
func.func @decode_16bit_of_1025(%q: tensor<1025x1x1x128xbf16>, %s: tensor<1025x1x128x128xbf16>) -> tensor<1025x1x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1025x1x1x128xbf16>, tensor<1025x1x1x128xbf16>, tensor<1025x1x1x128xbf16>)
      outs(%q, %s : tensor<1025x1x1x128xbf16>, tensor<1025x1x128x128xbf16>) -> tensor<1025x1x1x128xbf16>, tensor<1025x1x128x128xbf16>
  return %0#0 : tensor<1025x1x1x128xbf16>
}

// Several tokens: eight at a time, of a float32 state 32 rows, unless there are few ...

// CPU-LABEL: func @verify
// CPU: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 128>
// SM90-LABEL: func @verify
// SM90: schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16, wide_from = 65>
func.func @verify(%q: tensor<?x4x1x128xbf16>, %at: tensor<?xi32>, %s: tensor<?x1x128x128xf32>) -> tensor<?x4x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>)
      slots(%at : tensor<?xi32>) outs(%q, %s : tensor<?x4x1x128xbf16>, tensor<?x1x128x128xf32>) -> tensor<?x4x1x128xbf16>, tensor<?x1x128x128xf32>
  return %0#0 : tensor<?x4x1x128xbf16>
}

// ... of one of 16 bits, or of few states, 16 ...

// SM90-LABEL: func @verify_16bit
// SM90: schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>
func.func @verify_16bit(%q: tensor<?x4x1x128xbf16>, %s: tensor<?x1x128x128xbf16>) -> tensor<?x4x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>)
      outs(%q, %s : tensor<?x4x1x128xbf16>, tensor<?x1x128x128xbf16>) -> tensor<?x4x1x128xbf16>, tensor<?x1x128x128xbf16>
  return %0#0 : tensor<?x4x1x128xbf16>
}

// SM90-LABEL: func @verify_64
// SM90: schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>
func.func @verify_64(%q: tensor<64x4x1x128xbf16>, %s: tensor<64x1x128x128xf32>) -> tensor<64x4x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<64x4x1x128xbf16>, tensor<64x4x1x128xbf16>, tensor<64x4x1x128xbf16>)
      outs(%q, %s : tensor<64x4x1x128xbf16>, tensor<64x1x128x128xf32>) -> tensor<64x4x1x128xbf16>, tensor<64x1x128x128xf32>
  return %0#0 : tensor<64x4x1x128xbf16>
}

// SM90-LABEL: func @verify_65
// SM90: schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 32>
func.func @verify_65(%q: tensor<65x4x1x128xbf16>, %s: tensor<65x1x128x128xf32>) -> tensor<65x4x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<65x4x1x128xbf16>, tensor<65x4x1x128xbf16>, tensor<65x4x1x128xbf16>)
      outs(%q, %s : tensor<65x4x1x128xbf16>, tensor<65x1x128x128xf32>) -> tensor<65x4x1x128xbf16>, tensor<65x1x128x128xf32>
  return %0#0 : tensor<65x4x1x128xbf16>
}

// SM90-LABEL: func @verify_one
// SM90: schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>
func.func @verify_one(%q: tensor<1x4x1x128xbf16>, %s: tensor<1x1x128x128xf32>) -> tensor<1x4x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x4x1x128xbf16>, tensor<1x4x1x128xbf16>, tensor<1x4x1x128xbf16>)
      outs(%q, %s : tensor<1x4x1x128xbf16>, tensor<1x1x128x128xf32>) -> tensor<1x4x1x128xbf16>, tensor<1x1x128x128xf32>
  return %0#0 : tensor<1x4x1x128xbf16>
}

// ... and token by token where products do not say it: a gate per channel.

// SM90-LABEL: func @verify_channels
// SM90: schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 16, warps = 8, streaming = true, overlap = true, wide_from = 129>
func.func @verify_channels(%q: tensor<?x4x1x128xbf16>, %g: tensor<?x4x1x128xf32>, %s: tensor<?x1x128x128xf32>) -> tensor<?x4x1x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>)
      gate(%g : tensor<?x4x1x128xf32>) outs(%q, %s : tensor<?x4x1x128xbf16>, tensor<?x1x128x128xf32>) -> tensor<?x4x1x128xbf16>, tensor<?x1x128x128xf32>
  return %0#0 : tensor<?x4x1x128xbf16>
}

// Normalised keys are another reason for 16: the kernel makes them too.

// SM90-LABEL: func @verify_normalised
// SM90: schedule = #gdn.schedule<phases = step, chunk = 8, value_block = 16>
func.func @verify_normalised(%q: tensor<?x4x1x128xbf16>, %e: tensor<?x4x1x128xbf16>, %s: tensor<?x1x128x128xf32>) -> tensor<?x4x1x128xbf16> {
  %k = gdn.l2norm ins(%q : tensor<?x4x1x128xbf16>) outs(%e : tensor<?x4x1x128xbf16>) -> tensor<?x4x1x128xbf16>
  %0:2 = gdn.recurrence ins(%q, %k, %q : tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>, tensor<?x4x1x128xbf16>)
      outs(%q, %s : tensor<?x4x1x128xbf16>, tensor<?x1x128x128xf32>) -> tensor<?x4x1x128xbf16>, tensor<?x1x128x128xf32>
  return %0#0 : tensor<?x4x1x128xbf16>
}

// High precision is asked for by the op or by the option: chunks of half the length.

// CPU-LABEL: func @high
// CPU: schedule = #gdn.schedule<phases = fused, chunk = 32, value_block = 128, precision = high>
// SM90-LABEL: func @high
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 32, value_block = 64, stages = 3, {{.*}}precision = high>
// SM89-LABEL: func @high
// SM89: schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 64, stages = 2, precision = high>
// HIGH-LABEL: func @high
// HIGH: schedule = #gdn.schedule<phases = segmented, chunk = 32, value_block = 64, stages = 3, {{.*}}precision = high>
func.func @high(%q: tensor<1x512x2x128xbf16>, %v: tensor<1x512x2x128xbf16>, %b: tensor<1x512x2xf32>, %o: tensor<1x512x2x128xf32>, %s: tensor<1x2x128x128xf32>)
    -> tensor<1x512x2x128xf32> {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x512x2x128xbf16>, tensor<1x512x2x128xbf16>, tensor<1x512x2x128xbf16>)
      beta(%b : tensor<1x512x2xf32>) outs(%o, %s : tensor<1x512x2x128xf32>, tensor<1x2x128x128xf32>)
      {schedule = #gdn.schedule<precision = high>} -> tensor<1x512x2x128xf32>, tensor<1x2x128x128xf32>
  return %0#0 : tensor<1x512x2x128xf32>
}

// Decayed copies of q and k.

// SM90-LABEL: func @channels
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 2, segments
// HIGH-LABEL: func @channels
// HIGH: schedule = #gdn.schedule<phases = segmented, chunk = 32, value_block = 64, stages = 3, {{.*}}precision = high>
func.func @channels(%q: tensor<1x512x2x128xbf16>, %g: tensor<1x512x2x128xf32>, %b: tensor<1x512x2xf32>, %s: tensor<1x2x128x128xf32>)
    -> tensor<1x512x2x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x512x2x128xbf16>, tensor<1x512x2x128xbf16>, tensor<1x512x2x128xbf16>)
      gate(%g : tensor<1x512x2x128xf32>) beta(%b : tensor<1x512x2xf32>) outs(%q, %s : tensor<1x512x2x128xbf16>, tensor<1x2x128x128xf32>)
      -> tensor<1x512x2x128xbf16>, tensor<1x2x128x128xf32>
  return %0#0 : tensor<1x512x2x128xbf16>
}

// Blocks of 64 rows of the state that need a second wave become half as many of
// 128; with an open number of sequences that is decided when the function is
// called, later for packed ones.

// SM90-LABEL: func @one_wave
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 3>
// SM89-LABEL: func @one_wave
func.func @one_wave(%q: tensor<2x512x32x128xbf16>, %s: tensor<2x32x128x128xf32>) -> tensor<2x512x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<2x512x32x128xbf16>, tensor<2x512x32x128xbf16>, tensor<2x512x32x128xbf16>)
      outs(%q, %s : tensor<2x512x32x128xbf16>, tensor<2x32x128x128xf32>) -> tensor<2x512x32x128xbf16>, tensor<2x32x128x128xf32>
  return %0#0 : tensor<2x512x32x128xbf16>
}

// SM90-LABEL: func @two_waves
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 3>
// HIGH-LABEL: func @two_waves
// HIGH: schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 128, stages = 3, precision = high>
// SM89-LABEL: func @two_waves
// SM89: value_block = 64
func.func @two_waves(%q: tensor<3x512x32x128xbf16>, %s: tensor<3x32x128x128xf32>) -> tensor<3x512x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<3x512x32x128xbf16>, tensor<3x512x32x128xbf16>, tensor<3x512x32x128xbf16>)
      outs(%q, %s : tensor<3x512x32x128xbf16>, tensor<3x32x128x128xf32>) -> tensor<3x512x32x128xbf16>, tensor<3x32x128x128xf32>
  return %0#0 : tensor<3x512x32x128xbf16>
}

// SM90-LABEL: func @open_number
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 3, segment_chunks = 5, wide_from = 133>
// SM89-LABEL: func @open_number
// SM89-NOT: wide_from
func.func @open_number(%q: tensor<?x?x32x128xf16>, %s: tensor<?x32x128x128xf32>) -> tensor<?x?x32x128xf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x?x32x128xf16>, tensor<?x?x32x128xf16>, tensor<?x?x32x128xf16>)
      outs(%q, %s : tensor<?x?x32x128xf16>, tensor<?x32x128x128xf32>) -> tensor<?x?x32x128xf16>, tensor<?x32x128x128xf32>
  return %0#0 : tensor<?x?x32x128xf16>
}

// Of the gated delta rule three stages of that size just fit. With one value head for each key head the blocks of 128
// rows make P themselves.

// SM90-LABEL: func @open_number_delta
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 3, segment_chunks = 5, wide_from = 133, scores_ahead = true, resident_from = 32>
// SM89-LABEL: func @open_number_delta
func.func @open_number_delta(%q: tensor<?x?x32x128xbf16>, %g: tensor<?x?x32xf32>, %s: tensor<?x32x128x128xf32>) -> tensor<?x?x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x?x32x128xbf16>, tensor<?x?x32x128xbf16>, tensor<?x?x32x128xbf16>)
      gate(%g : tensor<?x?x32xf32>) beta(%g : tensor<?x?x32xf32>)
      outs(%q, %s : tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>) -> tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %0#0 : tensor<?x?x32x128xbf16>
}

// Of packed sequences the mean counts: four of 2048 tokens in the mean, and one less; heads that are not in fours have no such form.

// SM90-LABEL: func @mean_of_32_chunks
// SM90: scores_ahead = true, resident_from = 32>
// SM90-LABEL: func @mean_below
// SM90: scores_ahead = true>
// SM90-LABEL: func @odd_heads
// SM90: scores_ahead = true>
// SM89-LABEL: func @mean_of_32_chunks
// SM89-NOT: resident
func.func @mean_of_32_chunks(%q: tensor<1x8192x32x128xbf16>, %g: tensor<1x8192x32xf32>, %at: tensor<5xi32>, %s: tensor<4x32x128x128xf32>) -> tensor<1x8192x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x8192x32x128xbf16>, tensor<1x8192x32x128xbf16>, tensor<1x8192x32x128xbf16>)
      gate(%g : tensor<1x8192x32xf32>) beta(%g : tensor<1x8192x32xf32>) offsets(%at : tensor<5xi32>)
      outs(%q, %s : tensor<1x8192x32x128xbf16>, tensor<4x32x128x128xf32>) -> tensor<1x8192x32x128xbf16>, tensor<4x32x128x128xf32>
  return %0#0 : tensor<1x8192x32x128xbf16>
}
func.func @mean_below(%q: tensor<1x8191x32x128xbf16>, %g: tensor<1x8191x32xf32>, %at: tensor<5xi32>, %s: tensor<4x32x128x128xf32>) -> tensor<1x8191x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x8191x32x128xbf16>, tensor<1x8191x32x128xbf16>, tensor<1x8191x32x128xbf16>)
      gate(%g : tensor<1x8191x32xf32>) beta(%g : tensor<1x8191x32xf32>) offsets(%at : tensor<5xi32>)
      outs(%q, %s : tensor<1x8191x32x128xbf16>, tensor<4x32x128x128xf32>) -> tensor<1x8191x32x128xbf16>, tensor<4x32x128x128xf32>
  return %0#0 : tensor<1x8191x32x128xbf16>
}
func.func @odd_heads(%q: tensor<8x8192x30x128xbf16>, %g: tensor<8x8192x30xf32>, %s: tensor<8x30x128x128xf32>) -> tensor<8x8192x30x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<8x8192x30x128xbf16>, tensor<8x8192x30x128xbf16>, tensor<8x8192x30x128xbf16>)
      gate(%g : tensor<8x8192x30xf32>) beta(%g : tensor<8x8192x30xf32>)
      outs(%q, %s : tensor<8x8192x30x128xbf16>, tensor<8x30x128x128xf32>) -> tensor<8x8192x30x128xbf16>, tensor<8x30x128x128xf32>
  return %0#0 : tensor<8x8192x30x128xbf16>
}

// With a known number of sequences all blocks have 128 rows, or none; a single chunk has nothing ahead of it; two value
// heads share their keys, and high precision and other targets have no such form.

// SM90-LABEL: func @four_sequences(
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 3, scores_ahead = true, resident_from = 32>
// SM90-LABEL: func @one_sequence(
// SM90-NOT: scores_ahead
// SM90-LABEL: func @one_chunk_of_many(
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, stages = 3>
// SM90-LABEL: func @shared_keys(
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 3, segment_chunks = 5, wide_from = 133>
// SM89-LABEL: func @four_sequences(
// SM89-NOT: scores_ahead
// HIGH-LABEL: func @four_sequences(
// HIGH-NOT: scores_ahead
// SM89-LABEL: func @one_sequence(
// HIGH-LABEL: func @one_sequence(
func.func @four_sequences(%q: tensor<4x8192x32x128xbf16>, %g: tensor<4x8192x32xf32>, %s: tensor<4x32x128x128xf32>) -> tensor<4x8192x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<4x8192x32x128xbf16>, tensor<4x8192x32x128xbf16>, tensor<4x8192x32x128xbf16>)
      gate(%g : tensor<4x8192x32xf32>) beta(%g : tensor<4x8192x32xf32>)
      outs(%q, %s : tensor<4x8192x32x128xbf16>, tensor<4x32x128x128xf32>) -> tensor<4x8192x32x128xbf16>, tensor<4x32x128x128xf32>
  return %0#0 : tensor<4x8192x32x128xbf16>
}
func.func @one_sequence(%q: tensor<1x8192x32x128xbf16>, %g: tensor<1x8192x32xf32>, %s: tensor<1x32x128x128xf32>) -> tensor<1x8192x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x8192x32x128xbf16>, tensor<1x8192x32x128xbf16>, tensor<1x8192x32x128xbf16>)
      gate(%g : tensor<1x8192x32xf32>) beta(%g : tensor<1x8192x32xf32>)
      outs(%q, %s : tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>) -> tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>
  return %0#0 : tensor<1x8192x32x128xbf16>
}
func.func @one_chunk_of_many(%q: tensor<4x64x32x128xbf16>, %g: tensor<4x64x32xf32>, %s: tensor<4x32x128x128xf32>) -> tensor<4x64x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<4x64x32x128xbf16>, tensor<4x64x32x128xbf16>, tensor<4x64x32x128xbf16>)
      gate(%g : tensor<4x64x32xf32>) beta(%g : tensor<4x64x32xf32>)
      outs(%q, %s : tensor<4x64x32x128xbf16>, tensor<4x32x128x128xf32>) -> tensor<4x64x32x128xbf16>, tensor<4x32x128x128xf32>
  return %0#0 : tensor<4x64x32x128xbf16>
}
func.func @shared_keys(%q: tensor<?x?x16x128xbf16>, %v: tensor<?x?x32x128xbf16>, %g: tensor<?x?x32xf32>, %s: tensor<?x32x128x128xf32>) -> tensor<?x?x32x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<?x?x16x128xbf16>, tensor<?x?x16x128xbf16>, tensor<?x?x32x128xbf16>)
      gate(%g : tensor<?x?x32xf32>) beta(%g : tensor<?x?x32xf32>)
      outs(%v, %s : tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>) -> tensor<?x?x32x128xbf16>, tensor<?x32x128x128xf32>
  return %0#0 : tensor<?x?x32x128xbf16>
}

// Half-empty blocks would not pay.

// SM90-LABEL: func @partial_blocks
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 3>
// SM89-LABEL: func @partial_blocks
func.func @partial_blocks(%q: tensor<?x?x32x96xf16>, %s: tensor<?x32x96x96xf32>) -> tensor<?x?x32x96xf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x?x32x96xf16>, tensor<?x?x32x96xf16>, tensor<?x?x32x96xf16>)
      outs(%q, %s : tensor<?x?x32x96xf16>, tensor<?x32x96x96xf32>) -> tensor<?x?x32x96xf16>, tensor<?x32x96x96xf32>
  return %0#0 : tensor<?x?x32x96xf16>
}

// SM90-LABEL: func @open_number_packed
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 3, wide_from = 133>
// SM89-LABEL: func @open_number_packed
func.func @open_number_packed(%q: tensor<1x?x64x128xbf16>, %cu: tensor<?xi32>, %s: tensor<?x64x128x128xf32>) -> tensor<1x?x64x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x64x128xbf16>, tensor<1x?x64x128xbf16>, tensor<1x?x64x128xbf16>)
      offsets(%cu : tensor<?xi32>) outs(%q, %s : tensor<1x?x64x128xbf16>, tensor<?x64x128x128xf32>) -> tensor<1x?x64x128xbf16>, tensor<?x64x128x128xf32>
  return %0#0 : tensor<1x?x64x128xbf16>
}

// SM90-LABEL: func @few_heads_packed
// SM90: schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, stages = 3, segments = 5, segment_chunks = 5, wide_from = 133>
// SM89-LABEL: func @few_heads_packed
func.func @few_heads_packed(%q: tensor<1x?x16x128xbf16>, %cu: tensor<?xi32>, %s: tensor<?x16x128x128xf32>) -> tensor<1x?x16x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>, tensor<1x?x16x128xbf16>)
      offsets(%cu : tensor<?xi32>) outs(%q, %s : tensor<1x?x16x128xbf16>, tensor<?x16x128x128xf32>) -> tensor<1x?x16x128xbf16>, tensor<?x16x128x128xf32>
  return %0#0 : tensor<1x?x16x128xbf16>
}

// Checkpoints leave two warpgroups no registers.

// SM90-LABEL: func @two_waves_of_checkpoints
// SM90: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 3>
// SM89-LABEL: func @two_waves_of_checkpoints
func.func @two_waves_of_checkpoints(%q: tensor<3x512x32x128xbf16>, %s: tensor<3x32x128x128xf32>, %c: tensor<3x8x32x128x128xf32>) -> tensor<3x512x32x128xbf16> {
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<3x512x32x128xbf16>, tensor<3x512x32x128xbf16>, tensor<3x512x32x128xbf16>)
      outs(%q, %s : tensor<3x512x32x128xbf16>, tensor<3x32x128x128xf32>) checkpoints(%c : tensor<3x8x32x128x128xf32>) {every = 64 : i64}
      -> tensor<3x512x32x128xbf16>, tensor<3x32x128x128xf32>, tensor<3x8x32x128x128xf32>
  return %0#0 : tensor<3x512x32x128xbf16>
}

// The second part of the inverse, of which there is one tile, is what 64 tokens have no room for with 99 KB.

// SM89-LABEL: func @rare_part
// SM89: schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 64, stages = 2>
// SM89-LABEL: func @no_rare_part
// SM89: schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 2>
func.func @rare_part(%q: tensor<1x?x1x64xbf16>, %b: tensor<1x?x1xf32>, %s: tensor<1x1x64x64xf32>) -> tensor<1x?x1x64xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>)
      beta(%b : tensor<1x?x1xf32>) outs(%q, %s : tensor<1x?x1x64xbf16>, tensor<1x1x64x64xf32>) -> tensor<1x?x1x64xbf16>, tensor<1x1x64x64xf32>
  return %0#0 : tensor<1x?x1x64xbf16>
}
func.func @no_rare_part(%q: tensor<1x?x1x64xbf16>, %b: tensor<1x?x1xf32>, %s: tensor<1x1x64x64xf32>) -> tensor<1x?x1x64xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>, tensor<1x?x1x64xbf16>)
      outs(%q, %s : tensor<1x?x1x64xbf16>, tensor<1x1x64x64xf32>) -> tensor<1x?x1x64xbf16>, tensor<1x1x64x64xf32>
  return %0#0 : tensor<1x?x1x64xbf16>
}

// High precision with gates per channel has blocks of 64 rows only: those of 128, which would fit, have not been measured.

// HIGH-LABEL: func @high_channels
// HIGH: schedule = #gdn.schedule<phases = split, chunk = 32, value_block = 64, stages = 3, precision = high>
// SM90-LABEL: func @high_channels
// SM90: wide_from =
func.func @high_channels(%q: tensor<?x8192x48x128xbf16>, %g: tensor<?x8192x48x128xf32>, %b: tensor<?x8192x48xf32>, %s: tensor<?x48x128x128xf32>) -> tensor<?x8192x48x128xbf16> {
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<?x8192x48x128xbf16>, tensor<?x8192x48x128xbf16>, tensor<?x8192x48x128xbf16>) gate(%g : tensor<?x8192x48x128xf32>)
      beta(%b : tensor<?x8192x48xf32>) outs(%q, %s : tensor<?x8192x48x128xbf16>, tensor<?x48x128x128xf32>) -> tensor<?x8192x48x128xbf16>, tensor<?x48x128x128xf32>
  return %0#0 : tensor<?x8192x48x128xbf16>
}
