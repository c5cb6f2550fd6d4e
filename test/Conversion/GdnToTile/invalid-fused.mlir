// RUN: gdn-opt %s -convert-gdn-to-tile -verify-diagnostics

// Nothing is ahead of the only chunk.

func.func @one_chunk(%q: memref<1x64x1x128xbf16>, %s: memref<1x1x128x128xf32>) {
  // expected-error @+1 {{fused phases in a tile program need more than one chunk, but T = 64}}
  gdn.recurrence ins(%q, %q, %q : memref<1x64x1x128xbf16>, memref<1x64x1x128xbf16>, memref<1x64x1x128xbf16>)
      outs(%q, %s : memref<1x64x1x128xbf16>, memref<1x1x128x128xf32>)
      {schedule = #gdn.schedule<phases = fused, chunk = 64, value_block = 64, stages = 2>}
  return
}
