// The delta rule of one Qwen3.5-35B-A3B layer: 16 key heads, 32 value heads, head size 128, one row of 8192 tokens.
//
//   q, k     [1, 8192, 16, 128] bf16   after the short convolution; normalised here
//   v        [1, 8192, 32, 128] bf16
//   a        [1, 8192, 32] f32         projection for the gate; A_log and dt_bias are the layer's parameters
//   beta     [1, 8192, 32] f32         sigmoid of the projection b
//   o, state                           destinations; state also holds the initial state
//
// gdn-compile examples/qwen3_5_35b_delta_rule.mlir --target=sm_90a --to=ptx -o DIR
module {
  func.func @forward(%q: tensor<1x8192x16x128xbf16> {gdn.name = "q"},
                     %k: tensor<1x8192x16x128xbf16> {gdn.name = "k"},
                     %v: tensor<1x8192x32x128xbf16> {gdn.name = "v"},
                     %a: tensor<1x8192x32xf32> {gdn.name = "a"},
                     %A_log: tensor<32xf32> {gdn.name = "A_log"},
                     %dt_bias: tensor<32xf32> {gdn.name = "dt_bias"},
                     %beta: tensor<1x8192x32xf32> {gdn.name = "beta"},
                     %o: tensor<1x8192x32x128xbf16> {gdn.name = "o", bufferization.writable = true},
                     %state: tensor<1x32x128x128xf32> {gdn.name = "state", bufferization.writable = true})
      -> (tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>) {
    %q_empty = tensor.empty() : tensor<1x8192x16x128xbf16>
    %q_norm = gdn.l2norm ins(%q : tensor<1x8192x16x128xbf16>) outs(%q_empty : tensor<1x8192x16x128xbf16>) {eps = 1.0e-06} -> tensor<1x8192x16x128xbf16>
    %k_empty = tensor.empty() : tensor<1x8192x16x128xbf16>
    %k_norm = gdn.l2norm ins(%k : tensor<1x8192x16x128xbf16>) outs(%k_empty : tensor<1x8192x16x128xbf16>) {eps = 1.0e-06} -> tensor<1x8192x16x128xbf16>
    %gate_empty = tensor.empty() : tensor<1x8192x32xf32>
    %gate = gdn.gate ins(%a, %A_log : tensor<1x8192x32xf32>, tensor<32xf32>) bias(%dt_bias : tensor<32xf32>) outs(%gate_empty : tensor<1x8192x32xf32>) -> tensor<1x8192x32xf32>
    %y, %final = gdn.recurrence ins(%q_norm, %k_norm, %v : tensor<1x8192x16x128xbf16>, tensor<1x8192x16x128xbf16>, tensor<1x8192x32x128xbf16>) gate(%gate : tensor<1x8192x32xf32>) beta(%beta : tensor<1x8192x32xf32>) outs(%o, %state : tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>) -> tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>
    return %y, %final : tensor<1x8192x32x128xbf16>, tensor<1x32x128x128xf32>
  }
}
