// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// Destination style

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: memref<1x4x6x8xf32>) {
  // expected-error @+1 {{expects all operands to be tensors or all to be memrefs, but they are mixed}}
  %0 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, memref<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>
  return
}

// -----

func.func @f(%q: memref<1x5x2x8xf32>, %k: memref<1x5x2x8xf32>, %v: memref<1x5x4x6xf32>, %o: memref<1x5x4x6xf32>, %s: memref<1x4x6x8xf32>) {
  // expected-error @+1 {{expects no results on memrefs, but has 2}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : memref<1x5x2x8xf32>, memref<1x5x2x8xf32>, memref<1x5x4x6xf32>) outs(%o, %s : memref<1x5x4x6xf32>, memref<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects one result per 'outs' operand (2), but has 1}}
  %0 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects one result per 'outs' operand (2), but has 0}}
  gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>)
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the type of result 1 ('tensor<1x4x8x6xf32>') to be that of its 'outs' operand ('tensor<1x4x6x8xf32>')}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x8x6xf32>
  return
}

// -----

func.func @f(%q: tensor<*xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{operand #0 must be ranked tensor or memref, but got 'tensor<*xf32>'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<*xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: memref<1x5x2x8xf32>, %k: memref<1x5x2x8xf32>, %v: memref<1x5x4x6xf32>, %o: memref<1x5x4x6xf32>, %s: memref<*xf32>) {
  // expected-error @+1 {{operand #4 must be ranked tensor or memref, but got 'memref<*xf32>'}}
  gdn.recurrence ins(%q, %k, %v : memref<1x5x2x8xf32>, memref<1x5x2x8xf32>, memref<1x5x4x6xf32>) outs(%o, %s : memref<1x5x4x6xf32>, memref<*xf32>)
  return
}

// -----

func.func @f(%q: memref<1x5x2x8xf32, affine_map<(a, b, c, d) -> (a, b, c, d floordiv 2)>>, %k: memref<1x5x2x8xf32>, %v: memref<1x5x4x6xf32>, %o: memref<1x5x4x6xf32>, %s: memref<1x4x6x8xf32>) {
  // expected-error @+1 {{operand #0 must be ranked tensor or memref, but got 'memref<1x5x2x8xf32, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3 floordiv 2)>>'}}
  gdn.recurrence ins(%q, %k, %v : memref<1x5x2x8xf32, affine_map<(a, b, c, d) -> (a, b, c, d floordiv 2)>>, memref<1x5x2x8xf32>, memref<1x5x4x6xf32>) outs(%o, %s : memref<1x5x4x6xf32>, memref<1x4x6x8xf32>)
  return
}

// -----

func.func @f(%q: memref<1x1x1x1xf32>, %s: memref<1x1x1x1xf32>) {
  // expected-error @+1 {{expects different memrefs as 'outs' operands, but has one twice}}
  gdn.recurrence ins(%q, %q, %q : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>, memref<1x1x1x1xf32>) outs(%s, %s : memref<1x1x1x1xf32>, memref<1x1x1x1xf32>)
  return
}

// -----

// gdn.recurrence: schedule

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: chunk must be 16, 32 or 64, but is 48}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 48, value_block = 64>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: value_block must lie in 1..512, but is 0}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 0>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: value_block must lie in 1..512, but is 513}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 513>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: stages must lie in 1..4, but is 5}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 5>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: stages must lie in 1..4, but is 0}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, stages = 0>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: segmented phases need segments in 1..2147483647, but segments is 0}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: chunk must be 16, 32 or 64, but is 8}}
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%v, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 8, value_block = 64>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: segmented phases need segments in 1..2147483647, but segments is -1}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, segments = -1>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: warps must lie in 1..16, but is 17}}
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%v, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8, warps = 17>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: segment_chunks must lie in 1..2147483647, but is 0}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = segmented, chunk = 64, value_block = 64, segments = 2, segment_chunks = 0>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: segments and segment_chunks belong to segmented phases, but phases is split}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, segments = 2>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: segments and segment_chunks belong to segmented phases, but phases is step}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = step, chunk = 16, value_block = 8, segment_chunks = 2>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: warps, streaming and overlap are of step phases}}
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%v, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 16, value_block = 8, streaming = true>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @schedule_auto(%q: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32> {
  // expected-error @+1 {{schedule: with phases = auto only precision can be asked for; the other fields need phases}}
  %0:2 = gdn.recurrence ins(%q, %q, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%v, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<chunk = 64, precision = high>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return %0#0 : tensor<1x5x4x6xf32>
}

// -----

// gdn.cumsum

func.func @f(%x: tensor<8xbf16>, %y: tensor<8xbf16>) {
  // expected-error @+1 {{expects the elements of 'x' to be f32, but they are 'bf16'}}
  %0 = gdn.cumsum ins(%x : tensor<8xbf16>) outs(%y : tensor<8xbf16>) -> tensor<8xbf16>
  return
}

// -----

func.func @f(%x: tensor<f32>, %y: tensor<f32>) {
  // expected-error @+1 {{expects 'x' to have rank 1 or more, but it is a scalar}}
  %0 = gdn.cumsum ins(%x : tensor<f32>) outs(%y : tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<8x2xf32>, %y: tensor<8xf32>) {
  // expected-error @+1 {{expects 'out' (shape 8) to have the shape of 'x' (8x2)}}
  %0 = gdn.cumsum ins(%x : tensor<8x2xf32>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @f(%x: tensor<8xf32>, %y: tensor<8xf64>) {
  // expected-error @+1 {{expects the elements of 'out' to be f32, but they are 'f64'}}
  %0 = gdn.cumsum ins(%x : tensor<8xf32>) outs(%y : tensor<8xf64>) -> tensor<8xf64>
  return
}

// -----

// gdn.scores

func.func @f(%x: tensor<4x8xi1>, %y: tensor<4x8xi1>, %a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects the elements of 'x' to be f16, bf16 or f32, but they are 'i1'}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xi1>, tensor<4x8xi1>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4xbf16>, %y: tensor<4xbf16>, %a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects 'x' to have rank 2, but its shape is 4}}
  %0 = gdn.scores ins(%x, %y : tensor<4xbf16>, tensor<4xbf16>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x?xbf16>, %y: tensor<4x?xbf16>, %a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'x' (head size) to be static, but its shape is 4x?}}
  %0 = gdn.scores ins(%x, %y : tensor<4x?xbf16>, tensor<4x?xbf16>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<8x8xbf16>, %a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects 'y' (shape 8x8) to have the shape of 'x' (4x8)}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<8x8xbf16>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x8xf16>, %a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects the elements of 'y' ('f16') to be those of 'x' ('bf16')}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x8xf16>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x?xbf16>, %a: tensor<4x4xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'y' (head size) to be static, but its shape is 4x?}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x?xbf16>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %a: tensor<16xf32>) {
  // expected-error @+1 {{expects 'out' to have rank 2, but its shape is 16}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x8xbf16>) outs(%a : tensor<16xf32>) -> tensor<16xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %a: tensor<4x4xbf16>) {
  // expected-error @+1 {{expects the elements of 'out' to be f32, but they are 'bf16'}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x8xbf16>) outs(%a : tensor<4x4xbf16>) -> tensor<4x4xbf16>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %a: tensor<4x4xf32>, %g: tensor<4x1x8xf32>) {
  // expected-error @+1 {{expects 'gate' to be [C] or [C, K], but its shape is 4x1x8}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x8xbf16>) gate(%g : tensor<4x1x8xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %a: tensor<4x4xf32>, %g: tensor<4xbf16>) {
  // expected-error @+1 {{expects the elements of 'gate' to be f32, but they are 'bf16'}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x8xbf16>) gate(%g : tensor<4xbf16>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %a: tensor<4x4xf32>, %g: tensor<4x1xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'gate' to be K = 8, but its shape is 4x1}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x8xbf16>) gate(%g : tensor<4x1xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xbf16>, %y: tensor<?x8xbf16>, %a: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'out' to be C = 4, but its shape is 4x8}}
  %0 = gdn.scores ins(%x, %y : tensor<?x8xbf16>, tensor<?x8xbf16>) outs(%a : tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xbf16>, %y: tensor<4x8xbf16>, %a: tensor<4x4xf32>, %g: tensor<8xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'gate' to be C = 4, but its shape is 8}}
  %0 = gdn.scores ins(%x, %y : tensor<4x8xbf16>, tensor<4x8xbf16>) gate(%g : tensor<8xf32>) outs(%a : tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

// gdn.tri_inverse

func.func @f(%x: tensor<4x4xf64>, %y: tensor<4x4xf64>) {
  // expected-error @+1 {{expects the elements of 'x' to be f32, but they are 'f64'}}
  %0 = gdn.tri_inverse ins(%x : tensor<4x4xf64>) outs(%y : tensor<4x4xf64>) -> tensor<4x4xf64>
  return
}

// -----

func.func @f(%x: tensor<1x4x4xf32>, %y: tensor<1x4x4xf32>) {
  // expected-error @+1 {{expects 'x' to have rank 2, but its shape is 1x4x4}}
  %0 = gdn.tri_inverse ins(%x : tensor<1x4x4xf32>) outs(%y : tensor<1x4x4xf32>) -> tensor<1x4x4xf32>
  return
}

// -----

func.func @f(%x: tensor<?x4xf32>, %y: tensor<?x4xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'x' (C) to be static, but its shape is ?x4}}
  %0 = gdn.tri_inverse ins(%x : tensor<?x4xf32>) outs(%y : tensor<?x4xf32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @f(%x: tensor<0x0xf32>, %y: tensor<0x0xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'x' (C) to be positive, but its shape is 0x0}}
  %0 = gdn.tri_inverse ins(%x : tensor<0x0xf32>) outs(%y : tensor<0x0xf32>) -> tensor<0x0xf32>
  return
}

// -----

func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'x' to be C = 4, but its shape is 4x8}}
  %0 = gdn.tri_inverse ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x?xf32>, %y: tensor<4x?xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'x' to be C = 4, but its shape is 4x?}}
  %0 = gdn.tri_inverse ins(%x : tensor<4x?xf32>) outs(%y : tensor<4x?xf32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xf32>, %y: tensor<8x8xf32>) {
  // expected-error @+1 {{expects 'out' (shape 8x8) to have the shape of 'x' (4x4)}}
  %0 = gdn.tri_inverse ins(%x : tensor<4x4xf32>) outs(%y : tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xf32>, %y: tensor<4x?xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'out' (C) to be static, but its shape is 4x?}}
  %0 = gdn.tri_inverse ins(%x : tensor<4x4xf32>) outs(%y : tensor<4x?xf32>) -> tensor<4x?xf32>
  return
}

// -----

func.func @f(%x: tensor<4x4xf32>, %y: tensor<4x4xf16>) {
  // expected-error @+1 {{expects the elements of 'out' to be f32, but they are 'f16'}}
  %0 = gdn.tri_inverse ins(%x : tensor<4x4xf32>) outs(%y : tensor<4x4xf16>) -> tensor<4x4xf16>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: wide_from must lie in 0..2147483647, but is -1}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, wide_from = -1>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: wide_from belongs to split, segmented and step phases, but phases is fused}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = fused, chunk = 64, value_block = 64, wide_from = 9>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: scores_ahead belongs to split and segmented phases, but phases is fused}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = fused, chunk = 64, value_block = 64, scores_ahead = true>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @resident_alone(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: resident_from belongs to scores_ahead}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 64, resident_from = 32>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @resident_below(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{schedule: resident_from must lie in 0..2147483647, but is -1}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {schedule = #gdn.schedule<phases = split, chunk = 64, value_block = 128, scores_ahead = true, resident_from = -1>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}
