// A small gated delta rule, followed through all levels in README.md:
// 1 key head, 2 value heads, head size 64, 128 tokens.
func.func @forward(%q: tensor<1x128x1x64xbf16>, %k: tensor<1x128x1x64xbf16>, %v: tensor<1x128x2x64xbf16>,
                   %g: tensor<1x128x2xf32>, %b: tensor<1x128x2xf32>,
                   %o0: tensor<1x128x2x64xbf16> {bufferization.writable = true},
                   %s0: tensor<1x2x64x64xf32> {bufferization.writable = true})
    -> (tensor<1x128x2x64xbf16>, tensor<1x2x64x64xf32>) {
  %o, %s = gdn.recurrence ins(%q, %k, %v : tensor<1x128x1x64xbf16>, tensor<1x128x1x64xbf16>, tensor<1x128x2x64xbf16>)
      gate(%g : tensor<1x128x2xf32>) beta(%b : tensor<1x128x2xf32>)
      outs(%o0, %s0 : tensor<1x128x2x64xbf16>, tensor<1x2x64x64xf32>)
      -> tensor<1x128x2x64xbf16>, tensor<1x2x64x64xf32>
  return %o, %s : tensor<1x128x2x64xbf16>, tensor<1x2x64x64xf32>
}
