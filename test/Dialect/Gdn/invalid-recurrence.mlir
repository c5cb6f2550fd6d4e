// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// gdn.recurrence: q, k, v, out

func.func @f(%q: tensor<5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'q' to have rank 4, but its shape is 5x2x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<f32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'k' to have rank 4, but its shape is scalar}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<f32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6x1xf32>, %o: tensor<1x5x4x6x1xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'v' to have rank 4, but its shape is 1x5x4x6x1}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6x1xf32>) outs(%o, %s : tensor<1x5x4x6x1xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6x1xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x24xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'out' to have rank 4, but its shape is 1x5x24}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x24xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x24xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<4x6x8xf32>) {
  // expected-error @+1 {{expects 'state' to have rank 4, but its shape is 4x6x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf64>, %k: tensor<1x5x2x8xf64>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'q' to be f16, bf16 or f32, but they are 'f64'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf64>, tensor<1x5x2x8xf64>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xindex>, %o: tensor<1x5x4x6xindex>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'v' to be f16, bf16 or f32, but they are 'index'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xindex>) outs(%o, %s : tensor<1x5x4x6xindex>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xindex>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xi32>) {
  // expected-error @+1 {{expects the elements of 'state' to be f16, bf16 or f32, but they are 'i32'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xi32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xi32>
  return
}

// -----

func.func @f(%q: tensor<1x5x?x8xf32>, %k: tensor<1x5x?x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'q' (number of heads) to be static, but its shape is 1x5x?x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x?x8xf32>, tensor<1x5x?x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x?xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'k' (head size) to be static, but its shape is 1x5x2x?}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x?xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x?xf32>, %o: tensor<1x5x4x?xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'v' (head size) to be static, but its shape is 1x5x4x?}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x?xf32>) outs(%o, %s : tensor<1x5x4x?xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x?xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x?x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'out' (number of heads) to be static, but its shape is 1x5x?x6}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x?x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x?x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x0x8xf32>, %k: tensor<1x5x0x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'q' (number of heads) to be positive, but its shape is 1x5x0x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x0x8xf32>, tensor<1x5x0x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x0xf32>, %o: tensor<1x5x4x0xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'v' (head size) to be positive, but its shape is 1x5x4x0}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x0xf32>) outs(%o, %s : tensor<1x5x4x0xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x0xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x16xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'k' (shape 1x5x2x16) to have the shape of 'q' (1x5x2x8)}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x16xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x8xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'out' (shape 1x5x4x8) to have the shape of 'v' (1x5x4x6)}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x8xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x8xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xbf16>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'k' ('bf16') to be those of 'q' ('f32')}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xbf16>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf16>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'out' ('f16') to be f32 or those of 'q' ('f32')}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf16>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf16>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x3x8xf32>, %k: tensor<1x5x3x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the number of value heads (4) to be a multiple of the number of key heads (3)}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x3x8xf32>, tensor<1x5x3x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

// gdn.recurrence: one B and one T, wherever they are static

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x7x4x6xf32>, %o: tensor<1x7x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'v' to be T = 5, but its shape is 1x7x4x6}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x7x4x6xf32>) outs(%o, %s : tensor<1x7x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x7x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<?x?x2x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<?x?x4x6xf32>, %g: tensor<?x7x4xf32>, %b: tensor<?x5x4xf32>, %o: tensor<?x?x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'beta' to be T = 7, but its shape is ?x5x4}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<?x?x4x6xf32>) gate(%g : tensor<?x7x4xf32>) beta(%b : tensor<?x5x4xf32>) outs(%o, %s : tensor<?x?x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<?x?x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<?x?x2x8xf32>, %k: tensor<?x3x2x8xf32>, %v: tensor<?x?x4x6xf32>, %o: tensor<?x4x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'out' to be T = 3, but its shape is ?x4x4x6}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<?x?x2x8xf32>, tensor<?x3x2x8xf32>, tensor<?x?x4x6xf32>) outs(%o, %s : tensor<?x4x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<?x4x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<?x?x2x8xf32>, %k: tensor<?x?x2x8xf32>, %v: tensor<2x?x4x6xf32>, %g: tensor<3x?x4xf32>, %o: tensor<2x?x4x6xf32>, %s: tensor<2x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'gate' to be B = 2, but its shape is 3x?x4}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<?x?x2x8xf32>, tensor<?x?x2x8xf32>, tensor<2x?x4x6xf32>) gate(%g : tensor<3x?x4xf32>) outs(%o, %s : tensor<2x?x4x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x?x4x6xf32>, tensor<2x4x6x8xf32>
  return
}

// -----

// gdn.recurrence: gate, beta, erase, write

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %g: tensor<1x5xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'gate' to be [B, T, Hv] or [B, T, Hv, K], but its shape is 1x5}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) gate(%g : tensor<1x5xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %g: tensor<1x5x2xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'gate' to be Hv = 4, but its shape is 1x5x2}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) gate(%g : tensor<1x5x2xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %g: tensor<1x5x?xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'gate' to be Hv = 4, but its shape is 1x5x?}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) gate(%g : tensor<1x5x?xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %g: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'gate' to be K = 8, but its shape is 1x5x4x6}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) gate(%g : tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %g: tensor<1x5x4xbf16>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'gate' ('bf16') to be f32 or those of 'q' ('f32')}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) gate(%g : tensor<1x5x4xbf16>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %b: tensor<1x5x4x8xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'beta' to have rank 3, but its shape is 1x5x4x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) beta(%b : tensor<1x5x4x8xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xbf16>, %k: tensor<1x5x2x8xbf16>, %v: tensor<1x5x4x6xbf16>, %b: tensor<1x5x4xf16>, %o: tensor<1x5x4x6xbf16>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'beta' ('f16') to be f32 or those of 'q' ('bf16')}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xbf16>, tensor<1x5x2x8xbf16>, tensor<1x5x4x6xbf16>) beta(%b : tensor<1x5x4xf16>) outs(%o, %s : tensor<1x5x4x6xbf16>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xbf16>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %e: tensor<1x5x4x8xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'erase' and 'write' together, but has only 'erase'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) erase(%e : tensor<1x5x4x8xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %w: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'erase' and 'write' together, but has only 'write'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) write(%w : tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %b: tensor<1x5x4xf32>, %e: tensor<1x5x4x8xf32>, %w: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects either 'beta' or 'erase' and 'write', but has both}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) beta(%b : tensor<1x5x4xf32>) erase(%e : tensor<1x5x4x8xf32>) write(%w : tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %e: tensor<1x5x4xf32>, %w: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'erase' to have rank 4, but its shape is 1x5x4}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) erase(%e : tensor<1x5x4xf32>) write(%w : tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %e: tensor<1x5x4x6xf32>, %w: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'erase' to be K = 8, but its shape is 1x5x4x6}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) erase(%e : tensor<1x5x4x6xf32>) write(%w : tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %e: tensor<1x5x4x8xf32>, %w: tensor<1x5x4x?xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'write' to be V = 6, but its shape is 1x5x4x?}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) erase(%e : tensor<1x5x4x8xf32>) write(%w : tensor<1x5x4x?xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

// gdn.recurrence: offsets and state

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %cu: tensor<i32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'offsets' to have rank 1, but its shape is scalar}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) offsets(%cu : tensor<i32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %cu: tensor<2xindex>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'offsets' to be i32 or i64, but they are 'index'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) offsets(%cu : tensor<2xindex>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %cu: tensor<2xsi32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects the elements of 'offsets' to be i32 or i64, but they are 'si32'}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) offsets(%cu : tensor<2xsi32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %cu: tensor<0xi32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'offsets' to have N + 1 >= 1 entries, but its shape is 0}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) offsets(%cu : tensor<0xi32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<?x5x2x8xf32>, %k: tensor<?x5x2x8xf32>, %v: tensor<2x5x4x6xf32>, %cu: tensor<2xi32>, %o: tensor<2x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects B = 1 with 'offsets' (packed sequences), but B is 2}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<?x5x2x8xf32>, tensor<?x5x2x8xf32>, tensor<2x5x4x6xf32>) offsets(%cu : tensor<2xi32>) outs(%o, %s : tensor<2x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<2x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<?x5x2x8xf32>, %k: tensor<?x5x2x8xf32>, %v: tensor<2x5x4x6xf32>, %o: tensor<2x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'state' to hold N = 2 sequences (B), but its shape is 1x4x6x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<?x5x2x8xf32>, tensor<?x5x2x8xf32>, tensor<2x5x4x6xf32>) outs(%o, %s : tensor<2x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<2x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %cu: tensor<4xi64>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'state' to hold N = 3 sequences (size of 'offsets' - 1), but its shape is 1x4x6x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) offsets(%cu : tensor<4xi64>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x2x6x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'state' to be Hv = 4, but its shape is 1x2x6x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x2x6x8xf32>) -> tensor<1x5x4x6xf32>, tensor<1x2x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x8x6xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'state' to be V (v_first) = 6, but its shape is 1x4x8x6}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x8x6xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x8x6xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'state' to be K (k_first) = 8, but its shape is 1x4x6x8}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {state_layout = #gdn.state_layout<k_first>} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x?xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'state' to be K (v_first) = 8, but its shape is 1x4x6x?}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x?xf32>) -> tensor<1x5x4x6xf32>, tensor<1x4x6x?xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x8x7xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'state' to be V (k_first) = 6, but its shape is 1x4x8x7}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x8x7xf32>) {state_layout = #gdn.state_layout<k_first>} -> tensor<1x5x4x6xf32>, tensor<1x4x8x7xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'scale' to be finite in float32, but it is }}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {scale = 0x7FF8000000000000 : f64} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

func.func @f(%q: tensor<1x5x2x8xf32>, %k: tensor<1x5x2x8xf32>, %v: tensor<1x5x4x6xf32>, %o: tensor<1x5x4x6xf32>, %s: tensor<1x4x6x8xf32>) {
  // expected-error @+1 {{expects 'scale' to be finite in float32, but it is 1.000000e+300}}
  %0:2 = gdn.recurrence ins(%q, %k, %v : tensor<1x5x2x8xf32>, tensor<1x5x2x8xf32>, tensor<1x5x4x6xf32>) outs(%o, %s : tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>) {scale = 1.0e300} -> tensor<1x5x4x6xf32>, tensor<1x4x6x8xf32>
  return
}

// -----

// gdn.recurrence: slots

func.func @slots_rank(%q: tensor<2x5x1x8xf32>, %at: tensor<2x1xi32>, %s: tensor<9x1x8x8xf32>) {
  // expected-error @+1 {{expects 'slots' to have rank 1, but its shape is 2x1}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) slots(%at : tensor<2x1xi32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<9x1x8x8xf32>) -> tensor<2x5x1x8xf32>, tensor<9x1x8x8xf32>
  return
}

// -----

func.func @slots_type(%q: tensor<2x5x1x8xf32>, %at: tensor<2xi16>, %s: tensor<9x1x8x8xf32>) {
  // expected-error @+1 {{expects the elements of 'slots' to be i32 or i64, but they are 'i16'}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) slots(%at : tensor<2xi16>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<9x1x8x8xf32>) -> tensor<2x5x1x8xf32>, tensor<9x1x8x8xf32>
  return
}

// -----

func.func @slots_batch(%q: tensor<2x5x1x8xf32>, %at: tensor<3xi32>, %s: tensor<9x1x8x8xf32>) {
  // expected-error @+1 {{expects 'slots' to hold N = 2 sequences (B), but its shape is 3}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) slots(%at : tensor<3xi32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<9x1x8x8xf32>) -> tensor<2x5x1x8xf32>, tensor<9x1x8x8xf32>
  return
}

// -----

func.func @slots_offsets(%q: tensor<1x5x1x8xf32>, %cu: tensor<4xi64>, %at: tensor<1xi32>, %s: tensor<9x1x8x8xf32>) {
  // expected-error @+1 {{expects 'slots' to hold N = 3 sequences (size of 'offsets' - 1), but its shape is 1}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<1x5x1x8xf32>, tensor<1x5x1x8xf32>, tensor<1x5x1x8xf32>) offsets(%cu : tensor<4xi64>) slots(%at : tensor<1xi32>) outs(%q, %s : tensor<1x5x1x8xf32>, tensor<9x1x8x8xf32>) -> tensor<1x5x1x8xf32>, tensor<9x1x8x8xf32>
  return
}

// -----

func.func @slots_mixed(%q: memref<2x5x1x8xf32>, %at: tensor<2xi32>, %s: memref<9x1x8x8xf32>) {
  // expected-error @+1 {{expects all operands to be tensors or all to be memrefs, but they are mixed}}
  gdn.recurrence ins(%q, %q, %q : memref<2x5x1x8xf32>, memref<2x5x1x8xf32>, memref<2x5x1x8xf32>) slots(%at : tensor<2xi32>) outs(%q, %s : memref<2x5x1x8xf32>, memref<9x1x8x8xf32>)
  return
}

// -----

// gdn.recurrence: initial and checkpoints

func.func @both_states(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x8xf32>) {
  // expected-error @+1 {{expects the initial state either as the destination 'state' or as 'initial', but has both}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) initial(%s : tensor<2x1x8x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>
  return
}

// -----

func.func @no_state(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x8xf32>) {
  // expected-error @+1 {{expects the initial state either as the destination 'state' or as 'initial', but has neither}}
  %0 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q : tensor<2x5x1x8xf32>) -> tensor<2x5x1x8xf32>
  return
}

// -----

func.func @initial_sequences(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x8xf32>) {
  // expected-error @+1 {{expects 'initial' to have rank 4, but its shape is 2x2x1x8x8}}
  %0 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) initial(%c : tensor<2x2x1x8x8xf32>) outs(%q : tensor<2x5x1x8xf32>) -> tensor<2x5x1x8xf32>
  return
}

// -----

func.func @initial_count(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<3x1x8x8xf32>) {
  // expected-error @+1 {{expects 'initial' to hold N = 2 sequences (B), but its shape is 3x1x8x8}}
  %0 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) initial(%c : tensor<3x1x8x8xf32>) outs(%q : tensor<2x5x1x8xf32>) -> tensor<2x5x1x8xf32>
  return
}

// -----

func.func @initial_matrix(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x1x8x9xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'initial' to be K (v_first) = 8, but its shape is 2x1x8x9}}
  %0 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) initial(%c : tensor<2x1x8x9xf32>) outs(%q : tensor<2x5x1x8xf32>) -> tensor<2x5x1x8xf32>
  return
}

// -----

func.func @only_checkpoints(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x8xf32>) {
  // expected-error @+1 {{expects 'checkpoints' and 'every' together, but has only 'checkpoints'}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<2x2x1x8x8xf32>) -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<2x2x1x8x8xf32>
  return
}

// -----

func.func @only_every(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x8xf32>) {
  // expected-error @+1 {{expects 'checkpoints' and 'every' together, but has only 'every'}}
  %0:2 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) {every = 2 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>
  return
}

// -----

func.func @every_zero(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x8xf32>) {
  // expected-error @+1 {{expects 'every' to be at least 1 token, but it is 0}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<2x2x1x8x8xf32>) {every = 0 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<2x2x1x8x8xf32>
  return
}

// -----

func.func @checkpoint_rank(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x1x8x8xf32>) {
  // expected-error @+1 {{expects 'checkpoints' to have rank 5, but its shape is 2x1x8x8}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<2x1x8x8xf32>) {every = 2 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<2x1x8x8xf32>
  return
}

// -----

func.func @checkpoint_type(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x8xf64>) {
  // expected-error @+1 {{expects the elements of 'checkpoints' to be f16, bf16 or f32, but they are 'f64'}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<2x2x1x8x8xf64>) {every = 2 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<2x2x1x8x8xf64>
  return
}

// -----

func.func @checkpoint_batch(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<3x2x1x8x8xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'checkpoints' to be B = 2, but its shape is 3x2x1x8x8}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<3x2x1x8x8xf32>) {every = 2 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<3x2x1x8x8xf32>
  return
}

// -----

func.func @checkpoint_count(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x3x1x8x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'checkpoints' to be T / every = 2, but its shape is 2x3x1x8x8}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<2x3x1x8x8xf32>) {every = 2 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<2x3x1x8x8xf32>
  return
}

// -----

func.func @checkpoint_heads(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x2x8x8xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'checkpoints' to be Hv = 1, but its shape is 2x2x2x8x8}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<2x2x2x8x8xf32>) {every = 2 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<2x2x2x8x8xf32>
  return
}

// -----

func.func @checkpoint_matrix(%q: tensor<2x5x1x8xf32>, %s: tensor<2x1x8x8xf32>, %c: tensor<2x2x1x8x?xf32>) {
  // expected-error @+1 {{expects dimension 4 of 'checkpoints' to be K (v_first) = 8, but its shape is 2x2x1x8x?}}
  %0:3 = gdn.recurrence ins(%q, %q, %q : tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>, tensor<2x5x1x8xf32>) outs(%q, %s : tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>) checkpoints(%c : tensor<2x2x1x8x?xf32>) {every = 2 : i64} -> tensor<2x5x1x8xf32>, tensor<2x1x8x8xf32>, tensor<2x2x1x8x?xf32>
  return
}
