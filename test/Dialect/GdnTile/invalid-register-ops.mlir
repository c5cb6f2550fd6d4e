// RUN: gdn-opt %s -split-input-file -verify-diagnostics

func.func @f(%a: vector<16x64xbf16>, %b: vector<8x64xbf16>) {
  // expected-error @+1 {{expects one result per right operand, but has 2 operands and 1 results}}
  %0 = gdn_tile.dot %a times(%b, %b) : vector<16x64xbf16>, vector<8x64xbf16>, vector<8x64xbf16> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%a: vector<16x64xbf16>) {
  // expected-error @+1 {{expects one result per right operand, but has 0 operands and 0 results}}
  "gdn_tile.dot"(%a) : (vector<16x64xbf16>) -> ()
  return
}

// -----

func.func @f(%a: vector<24x64xbf16>, %b: vector<8x64xbf16>) {
  // expected-error @+1 {{expects 8 rows or a multiple of 16 on the left, but has 24}}
  %0 = gdn_tile.dot %a times(%b) : vector<24x64xbf16>, vector<8x64xbf16> -> vector<24x8xf32>
  return
}

// -----

func.func @f(%a: vector<16x48xbf16>, %b: vector<8x48xbf16>) {
  // expected-error @+1 {{expects a multiple of 32 columns for these types, but has 48}}
  %0 = gdn_tile.dot %a times(%b) : vector<16x48xbf16>, vector<8x48xbf16> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%a: vector<16x12xf32>, %b: vector<8x12xf32>) {
  // expected-error @+1 {{expects a multiple of 8 columns for these types, but has 12}}
  %0 = gdn_tile.dot %a times(%b) : vector<16x12xf32>, vector<8x12xf32> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%a: vector<16x64xbf16>) {
  // expected-error @+1 {{expects 8x64 on the right and 16x8 of f32 as the result, but has 'vector<16x64xbf16>' and 'vector<16x8xf32>'}}
  %0 = gdn_tile.dot %a times(%a) : vector<16x64xbf16>, vector<16x64xbf16> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%a: vector<16x64xbf16>, %b: vector<8x64xbf16>) {
  // expected-error @+1 {{expects 8x64 on the right and 16x8 of f32 as the result, but has 'vector<8x64xbf16>' and 'vector<16x8xbf16>'}}
  %0 = gdn_tile.dot %a times(%b) : vector<16x64xbf16>, vector<8x64xbf16> -> vector<16x8xbf16>
  return
}

// -----

func.func @f(%a: vector<16x64xbf16>, %b: vector<8x64xf16>) {
  // expected-error @+1 {{has no product of 'bf16' and 'f16'}}
  %0 = gdn_tile.dot %a times(%b) : vector<16x64xbf16>, vector<8x64xf16> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%a: vector<16x64xbf16>, %b: vector<8x64xf32>) {
  // expected-error @+1 {{has no product of 'bf16' and 'f32'}}
  %0 = gdn_tile.dot %a times(%b) : vector<16x64xbf16>, vector<8x64xf32> -> vector<16x8xf32>
  return
}

// -----

func.func @f(%u: vector<8x8xf32>, %b: vector<8x64xbf16>, %acc: vector<8x64xf32>) {
  // expected-error @+1 {{expects a multiple of 16 rows on the left, but has 8}}
  %0 = gdn_tile.outer %u, %b acc(%acc) : vector<8x8xf32>, vector<8x64xbf16>, vector<8x64xf32>
  return
}

// -----

func.func @f(%u: vector<16x8xf32>, %b: vector<8x12xbf16>, %acc: vector<16x12xf32>) {
  // expected-error @+1 {{expects a multiple of 8 columns for these types, but has 12}}
  %0 = gdn_tile.outer %u, %b acc(%acc) : vector<16x8xf32>, vector<8x12xbf16>, vector<16x12xf32>
  return
}

// -----

func.func @f(%u: vector<16x8xf32>, %b: vector<8x64xf32>, %acc: vector<16x64xf32>) {
  // expected-error @+1 {{expects 16x8 of f32 times 8x64 of f16 or bf16 into f32, f16 or bf16, but has 'vector<16x8xf32>' times 'vector<8x64xf32>' into 'vector<16x64xf32>'}}
  %0 = gdn_tile.outer %u, %b acc(%acc) : vector<16x8xf32>, vector<8x64xf32>, vector<16x64xf32>
  return
}

// -----

func.func @f(%u: vector<16x8xf32>, %b: vector<8x64xbf16>, %acc: vector<16x64xf64>) {
  // expected-error @+1 {{into f32, f16 or bf16, but has 'vector<16x8xf32>' times 'vector<8x64xbf16>' into 'vector<16x64xf64>'}}
  %0 = gdn_tile.outer %u, %b acc(%acc) : vector<16x8xf32>, vector<8x64xbf16>, vector<16x64xf64>
  return
}

// -----

func.func @f(%u: vector<16x8xf32>, %b: vector<8x64xbf16>, %acc: vector<16x64xf32>, %scale: vector<1x8xf32>) {
  // expected-error @+1 {{expects a scale of vector<1x1xf32>, but it is 'vector<1x8xf32>'}}
  %0 = gdn_tile.outer %u, %b acc(%acc) scale(%scale : vector<1x8xf32>) : vector<16x8xf32>, vector<8x64xbf16>, vector<16x64xf32>
  return
}

// -----

func.func @f(%l: vector<8x16xf32>, %w: vector<16x8xf32>) {
  // expected-error @+1 {{expects 8x8 and Mx8 of f32, but has 'vector<8x16xf32>' and 'vector<16x8xf32>'}}
  %0 = gdn_tile.tri_solve %l, %w : vector<8x16xf32>, vector<16x8xf32>
  return
}

// -----

func.func @f(%l: vector<8x8xf32>, %w: vector<16x8xf32>) {
  // expected-error @+1 {{expects a count of 1 to 8 columns, but it is 9}}
  %0 = gdn_tile.tri_solve %l, %w {count = 9 : i64} : vector<8x8xf32>, vector<16x8xf32>
  return
}

// -----

func.func @f(%condition: i1) {
  scf.if %condition {
    // expected-error @+1 {{expects parent op 'func.func'}}
    gdn_tile.overlap_launches
  }
  return
}

// -----

func.func @f(%k: vector<16x64xbf16>) {
  // expected-error @+1 {{expects 8 rows of f16 or bf16, but has 'vector<16x64xbf16>'}}
  %0 = gdn_tile.stack %k, %k : vector<16x64xbf16>
  return
}

// -----

func.func @f(%k: vector<8x64xf32>) {
  // expected-error @+1 {{expects 8 rows of f16 or bf16, but has 'vector<8x64xf32>'}}
  %0 = gdn_tile.stack %k, %k : vector<8x64xf32>
  return
}
