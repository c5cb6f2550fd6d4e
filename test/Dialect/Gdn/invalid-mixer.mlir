// RUN: gdn-opt %s --split-input-file --verify-diagnostics

// gdn.l2norm

func.func @f(%x: tensor<2x8xi8>, %y: tensor<2x8xi8>) {
  // expected-error @+1 {{expects the elements of 'x' to be f16, bf16 or f32, but they are 'i8'}}
  %0 = gdn.l2norm ins(%x : tensor<2x8xi8>) outs(%y : tensor<2x8xi8>) -> tensor<2x8xi8>
  return
}

// -----

func.func @f(%x: tensor<f32>, %y: tensor<f32>) {
  // expected-error @+1 {{expects 'x' to have rank 1 or more, but it is a scalar}}
  %0 = gdn.l2norm ins(%x : tensor<f32>) outs(%y : tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @f(%x: tensor<2x?xf32>, %y: tensor<2x8xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'x' (row size) to be static, but its shape is 2x?}}
  %0 = gdn.l2norm ins(%x : tensor<2x?xf32>) outs(%y : tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x0xf32>, %y: tensor<2x0xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'x' (row size) to be positive, but its shape is 2x0}}
  %0 = gdn.l2norm ins(%x : tensor<2x0xf32>) outs(%y : tensor<2x0xf32>) -> tensor<2x0xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %y: tensor<2x8x1xf32>) {
  // expected-error @+1 {{expects 'out' (shape 2x8x1) to have the shape of 'x' (2x8)}}
  %0 = gdn.l2norm ins(%x : tensor<2x8xf32>) outs(%y : tensor<2x8x1xf32>) -> tensor<2x8x1xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %y: tensor<2x8xf32>) {
  // expected-error @+1 {{expects the elements of 'out' ('f32') to be those of 'x' ('bf16')}}
  %0 = gdn.l2norm ins(%x : tensor<2x8xbf16>) outs(%y : tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %y: tensor<2x?xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'out' (row size) to be static, but its shape is 2x?}}
  %0 = gdn.l2norm ins(%x : tensor<2x8xf32>) outs(%y : tensor<2x?xf32>) -> tensor<2x?xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>) {
  // expected-error @+1 {{expects 'eps' to be at least 0, but it is -1.000000e-06}}
  %0 = gdn.l2norm ins(%x : tensor<2x8xf32>) outs(%y : tensor<2x8xf32>) {eps = -1.0e-6} -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>) {
  // expected-error @+1 {{expects 'eps' to be finite in float32, but it is 1.000000e+39}}
  %0 = gdn.l2norm ins(%x : tensor<2x8xf32>) outs(%y : tensor<2x8xf32>) {eps = 1.0e39} -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<2x8xf32>, %y: tensor<2x8xf32>) {
  // expected-error @+1 {{expects one result per 'outs' operand (1), but has 0}}
  gdn.l2norm ins(%x : tensor<2x8xf32>) outs(%y : tensor<2x8xf32>)
  return
}

// -----

// gdn.gate

func.func @f(%a: tensor<1x5x4xf64>, %A: tensor<4xf32>, %g: tensor<1x5x4xf64>) {
  // expected-error @+1 {{expects the elements of 'a' to be f16, bf16 or f32, but they are 'f64'}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf64>, tensor<4xf32>) outs(%g : tensor<1x5x4xf64>) -> tensor<1x5x4xf64>
  return
}

// -----

func.func @f(%a: tensor<5x4xf32>, %A: tensor<4xf32>, %g: tensor<5x4xf32>) {
  // expected-error @+1 {{expects 'a' to be [B, T, Hv] or [B, T, Hv, K], but its shape is 5x4}}
  %0 = gdn.gate ins(%a, %A : tensor<5x4xf32>, tensor<4xf32>) outs(%g : tensor<5x4xf32>) -> tensor<5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4x8xf32>) {
  // expected-error @+1 {{expects 'out' (shape 1x5x4x8) to have the shape of 'a' (1x5x4)}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) outs(%g : tensor<1x5x4x8xf32>) -> tensor<1x5x4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x?xf32>, %A: tensor<4xf32>, %g: tensor<1x5x?xf32>) {
  // expected-error @+1 {{expects dimension 2 of 'a' (number of heads) to be static, but its shape is 1x5x?}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x?xf32>, tensor<4xf32>) outs(%g : tensor<1x5x?xf32>) -> tensor<1x5x?xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4x8xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4x?xf32>) {
  // expected-error @+1 {{expects dimension 3 of 'out' (head size) to be static, but its shape is 1x5x4x?}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4x8xf32>, tensor<4xf32>) outs(%g : tensor<1x5x4x?xf32>) -> tensor<1x5x4x?xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<1x4xf32>, %g: tensor<1x5x4xf32>) {
  // expected-error @+1 {{expects 'A_log' to have rank 1, but its shape is 1x4}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<1x4xf32>) outs(%g : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<2xf32>, %g: tensor<1x5x4xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'A_log' to be Hv = 4, but its shape is 2}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<2xf32>) outs(%g : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xbf16>, %g: tensor<1x5x4xf32>) {
  // expected-error @+1 {{expects the elements of 'A_log' to be f32, but they are 'bf16'}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xbf16>) outs(%g : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4xbf16>) {
  // expected-error @+1 {{expects the elements of 'out' to be f32, but they are 'bf16'}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) outs(%g : tensor<1x5x4xbf16>) -> tensor<1x5x4xbf16>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4xf32>, %dt: tensor<4x8xf32>) {
  // expected-error @+1 {{expects 'bias' to have rank 1, but its shape is 4x8}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) bias(%dt : tensor<4x8xf32>) outs(%g : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4xf32>, %dt: tensor<4xf16>) {
  // expected-error @+1 {{expects the elements of 'bias' to be f32, but they are 'f16'}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) bias(%dt : tensor<4xf16>) outs(%g : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4xf32>, %dt: tensor<?xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'bias' to be Hv = 4, but its shape is ?}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) bias(%dt : tensor<?xf32>) outs(%g : tensor<1x5x4xf32>) -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4x8xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4x8xf32>, %dt: tensor<4x4xf32>) {
  // expected-error @+1 {{expects dimension 1 of 'bias' to be K = 8, but its shape is 4x4}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4x8xf32>, tensor<4xf32>) bias(%dt : tensor<4x4xf32>) outs(%g : tensor<1x5x4x8xf32>) -> tensor<1x5x4x8xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4xf32>) {
  // expected-error @+1 {{expects 'lower_bound' to lie in [-5, 0), but it is -6.000000e+00}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) outs(%g : tensor<1x5x4xf32>) {lower_bound = -6.0} -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4xf32>) {
  // expected-error @+1 {{expects 'lower_bound' to lie in [-5, 0), but it is 0.000000e+00}}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) outs(%g : tensor<1x5x4xf32>) {lower_bound = 0.0} -> tensor<1x5x4xf32>
  return
}

// -----

func.func @f(%a: tensor<1x5x4xf32>, %A: tensor<4xf32>, %g: tensor<1x5x4xf32>) {
  // expected-error @+1 {{expects 'lower_bound' to lie in [-5, 0), but it is }}
  %0 = gdn.gate ins(%a, %A : tensor<1x5x4xf32>, tensor<4xf32>) outs(%g : tensor<1x5x4xf32>) {lower_bound = 0x7FF8000000000000 : f64} -> tensor<1x5x4xf32>
  return
}

// -----

// gdn.short_conv

func.func @f(%x: tensor<2x5x8xcomplex<f32>>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xcomplex<f32>>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects the elements of 'x' to be f16, bf16 or f32, but they are 'complex<f32>'}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xcomplex<f32>>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xcomplex<f32>>, tensor<2x8x3xbf16>) -> tensor<2x5x8xcomplex<f32>>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<5x8xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects 'x' to have rank 3, but its shape is 5x8}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x?xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x?xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects dimension 2 of 'x' (channels D) to be static, but its shape is 2x5x?}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x?xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x?xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x?xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x6x8xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects 'out' (shape 2x6x8) to have the shape of 'x' (2x5x8)}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x6x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x6x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x?xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects dimension 2 of 'out' (channels D) to be static, but its shape is 2x5x?}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x?xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x?xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xf32>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects the elements of 'out' ('f32') to be those of 'x' ('bf16')}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xf32>, tensor<2x8x3xbf16>) -> tensor<2x5x8xf32>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x1x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects 'w' to have rank 2, but its shape is 8x1x4}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x1x4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf16>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects the elements of 'w' ('f16') to be f32 or those of 'x' ('bf16')}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf16>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<4x8xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects dimension 0 of 'w' to be D = 8, but its shape is 4x8}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<4x8xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x?xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects dimension 1 of 'w' (taps W) to be static, but its shape is 8x?}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x?xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x0xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>) {
  // expected-error @+1 {{expects dimension 1 of 'w' (taps W) to be positive, but its shape is 8x0}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x0xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<8x3xbf16>) {
  // expected-error @+1 {{expects 'state' to have rank 3, but its shape is 8x3}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xf16>) {
  // expected-error @+1 {{expects the elements of 'state' ('f16') to be f32 or those of 'x' ('bf16')}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x3x8xbf16>) {
  // expected-error @+1 {{expects dimension 1 of 'state' to be D = 8, but its shape is 2x3x8}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x3x8xbf16>) -> tensor<2x5x8xbf16>, tensor<2x3x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>, %b: tensor<f32>) {
  // expected-error @+1 {{expects 'bias' to have rank 1, but its shape is scalar}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) bias(%b : tensor<f32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>, %b: tensor<8xf64>) {
  // expected-error @+1 {{expects the elements of 'bias' ('f64') to be f32 or those of 'x' ('bf16')}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) bias(%b : tensor<8xf64>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>, %b: tensor<4xf32>) {
  // expected-error @+1 {{expects dimension 0 of 'bias' to be D = 8, but its shape is 4}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) bias(%b : tensor<4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x2xbf16>) {
  // expected-error @+1 {{expects 'state' to hold a static number of at least W - 1 = 3 inputs per channel, but its shape is 2x8x2}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x2xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x2xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x?xbf16>) {
  // expected-error @+1 {{expects 'state' to hold a static number of at least W - 1 = 3 inputs per channel, but its shape is 2x8x?}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x?xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x?xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<2x8x3xbf16>, %cu: tensor<3xi32>) {
  // expected-error @+1 {{expects B = 1 with 'offsets' (packed sequences), but B is 2}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<2x5x8xbf16>, tensor<8x4xf32>) offsets(%cu : tensor<3xi32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<1x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<1x5x8xbf16>, %s: tensor<2x8x3xbf16>, %cu: tensor<3xf32>) {
  // expected-error @+1 {{expects the elements of 'offsets' to be i32 or i64, but they are 'f32'}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<1x5x8xbf16>, tensor<8x4xf32>) offsets(%cu : tensor<3xf32>) outs(%y, %s : tensor<1x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<1x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<?x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<2x5x8xbf16>, %s: tensor<3x8x3xbf16>) {
  // expected-error @+1 {{expects 'state' to hold N = 2 sequences (B), but its shape is 3x8x3}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<?x5x8xbf16>, tensor<8x4xf32>) outs(%y, %s : tensor<2x5x8xbf16>, tensor<3x8x3xbf16>) -> tensor<2x5x8xbf16>, tensor<3x8x3xbf16>
  return
}

// -----

func.func @f(%x: tensor<1x5x8xbf16>, %w: tensor<8x4xf32>, %y: tensor<1x5x8xbf16>, %s: tensor<2x8x3xbf16>, %cu: tensor<2xi32>) {
  // expected-error @+1 {{expects 'state' to hold N = 1 sequences (size of 'offsets' - 1), but its shape is 2x8x3}}
  %0:2 = gdn.short_conv ins(%x, %w : tensor<1x5x8xbf16>, tensor<8x4xf32>) offsets(%cu : tensor<2xi32>) outs(%y, %s : tensor<1x5x8xbf16>, tensor<2x8x3xbf16>) -> tensor<1x5x8xbf16>, tensor<2x8x3xbf16>
  return
}

// -----

// gdn.gated_rms_norm

func.func @f(%x: tensor<bf16>, %z: tensor<bf16>, %w: tensor<8xf32>, %y: tensor<bf16>) {
  // expected-error @+1 {{expects 'x' to have rank 1 or more, but it is a scalar}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<bf16>, tensor<bf16>, tensor<8xf32>) outs(%y : tensor<bf16>) -> tensor<bf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x4xbf16>, %w: tensor<8xf32>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects 'z' (shape 2x4) to have the shape of 'x' (2x8)}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x4xbf16>, tensor<8xf32>) outs(%y : tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x8xf32>, %w: tensor<8xf32>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects the elements of 'z' ('f32') to be those of 'x' ('bf16')}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x8xf32>, tensor<8xf32>) outs(%y : tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x?xbf16>, %w: tensor<8xf32>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects dimension 1 of 'z' (row size) to be static, but its shape is 2x?}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x?xbf16>, tensor<8xf32>) outs(%y : tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x8xbf16>, %w: tensor<8xf32>, %y: tensor<2x8xf32>) {
  // expected-error @+1 {{expects the elements of 'out' ('f32') to be those of 'x' ('bf16')}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<8xf32>) outs(%y : tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @f(%x: tensor<?x8xbf16>, %z: tensor<2x8xbf16>, %w: tensor<8xf32>, %y: tensor<3x8xbf16>) {
  // expected-error @+1 {{expects 'out' (shape 3x8) to have the shape of 'z' (2x8)}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<?x8xbf16>, tensor<2x8xbf16>, tensor<8xf32>) outs(%y : tensor<3x8xbf16>) -> tensor<3x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x8xbf16>, %w: tensor<1x8xf32>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects 'w' to have rank 1, but its shape is 1x8}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<1x8xf32>) outs(%y : tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x8xbf16>, %w: tensor<8xf16>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects the elements of 'w' ('f16') to be f32 or those of 'x' ('bf16')}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<8xf16>) outs(%y : tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x8xbf16>, %w: tensor<2xf32>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects dimension 0 of 'w' to be V = 8, but its shape is 2}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<2xf32>) outs(%y : tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x8xbf16>, %w: tensor<8xf32>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects 'eps' to be at least 0, but it is -1.000000e+00}}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<8xf32>) outs(%y : tensor<2x8xbf16>) {eps = -1.0} -> tensor<2x8xbf16>
  return
}

// -----

func.func @f(%x: tensor<2x8xbf16>, %z: tensor<2x8xbf16>, %w: tensor<8xf32>, %y: tensor<2x8xbf16>) {
  // expected-error @+1 {{expects 'eps' to be finite in float32, but it is }}
  %0 = gdn.gated_rms_norm ins(%x, %z, %w : tensor<2x8xbf16>, tensor<2x8xbf16>, tensor<8xf32>) outs(%y : tensor<2x8xbf16>) {eps = 0x7FF0000000000000 : f64} -> tensor<2x8xbf16>
  return
}
