// The whole linear-attention mixer of one Kimi-Linear-48B-A3B layer, as gdn.export.export_ir writes it: projections
// (linalg.matmul), short convolutions, normalisation, gates, delta rule, gated norm, output projection.
//
// gdn-opt examples/kimi_linear_mixer.mlir --gdn-to-linalg
module {
  func.func @forward(%x: tensor<1x?x2304xbf16> {gdn.name = "x"},
                     %q_proj_weight: tensor<4096x2304xbf16> {gdn.name = "q_proj_weight"},
                     %k_proj_weight: tensor<4096x2304xbf16> {gdn.name = "k_proj_weight"},
                     %v_proj_weight: tensor<4096x2304xbf16> {gdn.name = "v_proj_weight"},
                     %q_conv1d_weight: tensor<4096x4xbf16> {gdn.name = "q_conv1d_weight"},
                     %k_conv1d_weight: tensor<4096x4xbf16> {gdn.name = "k_conv1d_weight"},
                     %v_conv1d_weight: tensor<4096x4xbf16> {gdn.name = "v_conv1d_weight"},
                     %f_proj_0_weight: tensor<128x2304xbf16> {gdn.name = "f_proj_0_weight"},
                     %f_proj_1_weight: tensor<4096x128xbf16> {gdn.name = "f_proj_1_weight"},
                     %A_log: tensor<32xf32> {gdn.name = "A_log"},
                     %dt_bias: tensor<32x128xf32> {gdn.name = "dt_bias"},
                     %b_proj_weight: tensor<32x2304xbf16> {gdn.name = "b_proj_weight"},
                     %g_proj_0_weight: tensor<128x2304xbf16> {gdn.name = "g_proj_0_weight"},
                     %g_proj_1_weight: tensor<4096x128xbf16> {gdn.name = "g_proj_1_weight"},
                     %o_norm_weight: tensor<128xbf16> {gdn.name = "o_norm_weight"},
                     %o_proj_weight: tensor<2304x4096xbf16> {gdn.name = "o_proj_weight"},
                     %out: tensor<1x?x2304xbf16> {gdn.name = "out", bufferization.writable = true},
                     %q_conv_state: tensor<1x4096x3xbf16> {gdn.name = "q_conv_state", bufferization.writable = true},
                     %k_conv_state: tensor<1x4096x3xbf16> {gdn.name = "k_conv_state", bufferization.writable = true},
                     %v_conv_state: tensor<1x4096x3xbf16> {gdn.name = "v_conv_state", bufferization.writable = true},
                     %state: tensor<1x32x128x128xf32> {gdn.name = "state", bufferization.writable = true})
      -> (tensor<1x?x2304xbf16>, tensor<1x4096x3xbf16>, tensor<1x4096x3xbf16>, tensor<1x4096x3xbf16>, tensor<1x32x128x128xf32>) {
    %zero = arith.constant 0.0 : f32
    %axis0 = arith.constant 0 : index
    %B = tensor.dim %x, %axis0 : tensor<1x?x2304xbf16>
    %axis1 = arith.constant 1 : index
    %T = tensor.dim %x, %axis1 : tensor<1x?x2304xbf16>
    %x_rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<1x?x2304xbf16> into tensor<?x2304xbf16>
    %q_x_rows_acc_c0 = arith.constant 0 : index
    %q_x_rows_acc_d0 = tensor.dim %x_rows, %q_x_rows_acc_c0 : tensor<?x2304xbf16>
    %q_x_rows_acc = tensor.empty(%q_x_rows_acc_d0) : tensor<?x4096xf32>
    %q_x_rows_zero = linalg.fill ins(%zero : f32) outs(%q_x_rows_acc : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %q_x_rows_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x_rows, %q_proj_weight : tensor<?x2304xbf16>, tensor<4096x2304xbf16>) outs(%q_x_rows_zero : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %q_x_rows_empty_c0 = arith.constant 0 : index
    %q_x_rows_empty_d0 = tensor.dim %x_rows, %q_x_rows_empty_c0 : tensor<?x2304xbf16>
    %q_x_rows_empty = tensor.empty(%q_x_rows_empty_d0) : tensor<?x4096xbf16>
    %q_x_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%q_x_rows_sum : tensor<?x4096xf32>) outs(%q_x_rows_empty : tensor<?x4096xbf16>) {
    ^bb0(%q_x_rows_in0: f32, %q_x_rows_old: bf16):
      %q_x_rows_y = arith.truncf %q_x_rows_in0 : f32 to bf16
      linalg.yield %q_x_rows_y : bf16
    } -> tensor<?x4096xbf16>
    %q_x = tensor.expand_shape %q_x_rows [[0, 1], [2]] output_shape [1, %T, 4096] : tensor<?x4096xbf16> into tensor<1x?x4096xbf16>
    %q_y_empty_c1 = arith.constant 1 : index
    %q_y_empty_d1 = tensor.dim %q_x, %q_y_empty_c1 : tensor<1x?x4096xbf16>
    %q_y_empty = tensor.empty(%q_y_empty_d1) : tensor<1x?x4096xbf16>
    %q_y, %q_conv_final = gdn.short_conv ins(%q_x, %q_conv1d_weight : tensor<1x?x4096xbf16>, tensor<4096x4xbf16>) outs(%q_y_empty, %q_conv_state : tensor<1x?x4096xbf16>, tensor<1x4096x3xbf16>) {activation = #gdn.activation<silu>} -> tensor<1x?x4096xbf16>, tensor<1x4096x3xbf16>
    %q = tensor.expand_shape %q_y [[0], [1], [2, 3]] output_shape [1, %T, 32, 128] : tensor<1x?x4096xbf16> into tensor<1x?x32x128xbf16>
    %q_norm_empty_c1 = arith.constant 1 : index
    %q_norm_empty_d1 = tensor.dim %q, %q_norm_empty_c1 : tensor<1x?x32x128xbf16>
    %q_norm_empty = tensor.empty(%q_norm_empty_d1) : tensor<1x?x32x128xbf16>
    %q_norm = gdn.l2norm ins(%q : tensor<1x?x32x128xbf16>) outs(%q_norm_empty : tensor<1x?x32x128xbf16>) {eps = 1.0e-06} -> tensor<1x?x32x128xbf16>
    %k_x_rows_acc_c0 = arith.constant 0 : index
    %k_x_rows_acc_d0 = tensor.dim %x_rows, %k_x_rows_acc_c0 : tensor<?x2304xbf16>
    %k_x_rows_acc = tensor.empty(%k_x_rows_acc_d0) : tensor<?x4096xf32>
    %k_x_rows_zero = linalg.fill ins(%zero : f32) outs(%k_x_rows_acc : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %k_x_rows_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x_rows, %k_proj_weight : tensor<?x2304xbf16>, tensor<4096x2304xbf16>) outs(%k_x_rows_zero : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %k_x_rows_empty_c0 = arith.constant 0 : index
    %k_x_rows_empty_d0 = tensor.dim %x_rows, %k_x_rows_empty_c0 : tensor<?x2304xbf16>
    %k_x_rows_empty = tensor.empty(%k_x_rows_empty_d0) : tensor<?x4096xbf16>
    %k_x_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%k_x_rows_sum : tensor<?x4096xf32>) outs(%k_x_rows_empty : tensor<?x4096xbf16>) {
    ^bb0(%k_x_rows_in0: f32, %k_x_rows_old: bf16):
      %k_x_rows_y = arith.truncf %k_x_rows_in0 : f32 to bf16
      linalg.yield %k_x_rows_y : bf16
    } -> tensor<?x4096xbf16>
    %k_x = tensor.expand_shape %k_x_rows [[0, 1], [2]] output_shape [1, %T, 4096] : tensor<?x4096xbf16> into tensor<1x?x4096xbf16>
    %k_y_empty_c1 = arith.constant 1 : index
    %k_y_empty_d1 = tensor.dim %k_x, %k_y_empty_c1 : tensor<1x?x4096xbf16>
    %k_y_empty = tensor.empty(%k_y_empty_d1) : tensor<1x?x4096xbf16>
    %k_y, %k_conv_final = gdn.short_conv ins(%k_x, %k_conv1d_weight : tensor<1x?x4096xbf16>, tensor<4096x4xbf16>) outs(%k_y_empty, %k_conv_state : tensor<1x?x4096xbf16>, tensor<1x4096x3xbf16>) {activation = #gdn.activation<silu>} -> tensor<1x?x4096xbf16>, tensor<1x4096x3xbf16>
    %k = tensor.expand_shape %k_y [[0], [1], [2, 3]] output_shape [1, %T, 32, 128] : tensor<1x?x4096xbf16> into tensor<1x?x32x128xbf16>
    %k_norm_empty_c1 = arith.constant 1 : index
    %k_norm_empty_d1 = tensor.dim %k, %k_norm_empty_c1 : tensor<1x?x32x128xbf16>
    %k_norm_empty = tensor.empty(%k_norm_empty_d1) : tensor<1x?x32x128xbf16>
    %k_norm = gdn.l2norm ins(%k : tensor<1x?x32x128xbf16>) outs(%k_norm_empty : tensor<1x?x32x128xbf16>) {eps = 1.0e-06} -> tensor<1x?x32x128xbf16>
    %v_x_rows_acc_c0 = arith.constant 0 : index
    %v_x_rows_acc_d0 = tensor.dim %x_rows, %v_x_rows_acc_c0 : tensor<?x2304xbf16>
    %v_x_rows_acc = tensor.empty(%v_x_rows_acc_d0) : tensor<?x4096xf32>
    %v_x_rows_zero = linalg.fill ins(%zero : f32) outs(%v_x_rows_acc : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %v_x_rows_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x_rows, %v_proj_weight : tensor<?x2304xbf16>, tensor<4096x2304xbf16>) outs(%v_x_rows_zero : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %v_x_rows_empty_c0 = arith.constant 0 : index
    %v_x_rows_empty_d0 = tensor.dim %x_rows, %v_x_rows_empty_c0 : tensor<?x2304xbf16>
    %v_x_rows_empty = tensor.empty(%v_x_rows_empty_d0) : tensor<?x4096xbf16>
    %v_x_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%v_x_rows_sum : tensor<?x4096xf32>) outs(%v_x_rows_empty : tensor<?x4096xbf16>) {
    ^bb0(%v_x_rows_in0: f32, %v_x_rows_old: bf16):
      %v_x_rows_y = arith.truncf %v_x_rows_in0 : f32 to bf16
      linalg.yield %v_x_rows_y : bf16
    } -> tensor<?x4096xbf16>
    %v_x = tensor.expand_shape %v_x_rows [[0, 1], [2]] output_shape [1, %T, 4096] : tensor<?x4096xbf16> into tensor<1x?x4096xbf16>
    %v_y_empty_c1 = arith.constant 1 : index
    %v_y_empty_d1 = tensor.dim %v_x, %v_y_empty_c1 : tensor<1x?x4096xbf16>
    %v_y_empty = tensor.empty(%v_y_empty_d1) : tensor<1x?x4096xbf16>
    %v_y, %v_conv_final = gdn.short_conv ins(%v_x, %v_conv1d_weight : tensor<1x?x4096xbf16>, tensor<4096x4xbf16>) outs(%v_y_empty, %v_conv_state : tensor<1x?x4096xbf16>, tensor<1x4096x3xbf16>) {activation = #gdn.activation<silu>} -> tensor<1x?x4096xbf16>, tensor<1x4096x3xbf16>
    %v = tensor.expand_shape %v_y [[0], [1], [2, 3]] output_shape [1, %T, 32, 128] : tensor<1x?x4096xbf16> into tensor<1x?x32x128xbf16>
    %a_x_inner_acc_c0 = arith.constant 0 : index
    %a_x_inner_acc_d0 = tensor.dim %x_rows, %a_x_inner_acc_c0 : tensor<?x2304xbf16>
    %a_x_inner_acc = tensor.empty(%a_x_inner_acc_d0) : tensor<?x128xf32>
    %a_x_inner_zero = linalg.fill ins(%zero : f32) outs(%a_x_inner_acc : tensor<?x128xf32>) -> tensor<?x128xf32>
    %a_x_inner_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x_rows, %f_proj_0_weight : tensor<?x2304xbf16>, tensor<128x2304xbf16>) outs(%a_x_inner_zero : tensor<?x128xf32>) -> tensor<?x128xf32>
    %a_x_inner_empty_c0 = arith.constant 0 : index
    %a_x_inner_empty_d0 = tensor.dim %x_rows, %a_x_inner_empty_c0 : tensor<?x2304xbf16>
    %a_x_inner_empty = tensor.empty(%a_x_inner_empty_d0) : tensor<?x128xbf16>
    %a_x_inner = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a_x_inner_sum : tensor<?x128xf32>) outs(%a_x_inner_empty : tensor<?x128xbf16>) {
    ^bb0(%a_x_inner_in0: f32, %a_x_inner_old: bf16):
      %a_x_inner_y = arith.truncf %a_x_inner_in0 : f32 to bf16
      linalg.yield %a_x_inner_y : bf16
    } -> tensor<?x128xbf16>
    %a_x_rows_acc_c0 = arith.constant 0 : index
    %a_x_rows_acc_d0 = tensor.dim %a_x_inner, %a_x_rows_acc_c0 : tensor<?x128xbf16>
    %a_x_rows_acc = tensor.empty(%a_x_rows_acc_d0) : tensor<?x4096xf32>
    %a_x_rows_zero = linalg.fill ins(%zero : f32) outs(%a_x_rows_acc : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %a_x_rows_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%a_x_inner, %f_proj_1_weight : tensor<?x128xbf16>, tensor<4096x128xbf16>) outs(%a_x_rows_zero : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %a_x_rows_empty_c0 = arith.constant 0 : index
    %a_x_rows_empty_d0 = tensor.dim %a_x_inner, %a_x_rows_empty_c0 : tensor<?x128xbf16>
    %a_x_rows_empty = tensor.empty(%a_x_rows_empty_d0) : tensor<?x4096xbf16>
    %a_x_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%a_x_rows_sum : tensor<?x4096xf32>) outs(%a_x_rows_empty : tensor<?x4096xbf16>) {
    ^bb0(%a_x_rows_in0: f32, %a_x_rows_old: bf16):
      %a_x_rows_y = arith.truncf %a_x_rows_in0 : f32 to bf16
      linalg.yield %a_x_rows_y : bf16
    } -> tensor<?x4096xbf16>
    %a_x = tensor.expand_shape %a_x_rows [[0, 1], [2, 3]] output_shape [1, %T, 32, 128] : tensor<?x4096xbf16> into tensor<1x?x32x128xbf16>
    %a_f32_empty_c1 = arith.constant 1 : index
    %a_f32_empty_d1 = tensor.dim %a_x, %a_f32_empty_c1 : tensor<1x?x32x128xbf16>
    %a_f32_empty = tensor.empty(%a_f32_empty_d1) : tensor<1x?x32x128xf32>
    %a_f32 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>, affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%a_x : tensor<1x?x32x128xbf16>) outs(%a_f32_empty : tensor<1x?x32x128xf32>) {
    ^bb0(%a_f32_in0: bf16, %a_f32_old: f32):
      %a_f32_x0 = arith.extf %a_f32_in0 : bf16 to f32
      linalg.yield %a_f32_x0 : f32
    } -> tensor<1x?x32x128xf32>
    %decay_empty_c1 = arith.constant 1 : index
    %decay_empty_d1 = tensor.dim %a_f32, %decay_empty_c1 : tensor<1x?x32x128xf32>
    %decay_empty = tensor.empty(%decay_empty_d1) : tensor<1x?x32x128xf32>
    %decay = gdn.gate ins(%a_f32, %A_log : tensor<1x?x32x128xf32>, tensor<32xf32>) bias(%dt_bias : tensor<32x128xf32>) outs(%decay_empty : tensor<1x?x32x128xf32>) -> tensor<1x?x32x128xf32>
    %b_x_rows_acc_c0 = arith.constant 0 : index
    %b_x_rows_acc_d0 = tensor.dim %x_rows, %b_x_rows_acc_c0 : tensor<?x2304xbf16>
    %b_x_rows_acc = tensor.empty(%b_x_rows_acc_d0) : tensor<?x32xf32>
    %b_x_rows_zero = linalg.fill ins(%zero : f32) outs(%b_x_rows_acc : tensor<?x32xf32>) -> tensor<?x32xf32>
    %b_x_rows_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x_rows, %b_proj_weight : tensor<?x2304xbf16>, tensor<32x2304xbf16>) outs(%b_x_rows_zero : tensor<?x32xf32>) -> tensor<?x32xf32>
    %b_x_rows_empty_c0 = arith.constant 0 : index
    %b_x_rows_empty_d0 = tensor.dim %x_rows, %b_x_rows_empty_c0 : tensor<?x2304xbf16>
    %b_x_rows_empty = tensor.empty(%b_x_rows_empty_d0) : tensor<?x32xbf16>
    %b_x_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%b_x_rows_sum : tensor<?x32xf32>) outs(%b_x_rows_empty : tensor<?x32xbf16>) {
    ^bb0(%b_x_rows_in0: f32, %b_x_rows_old: bf16):
      %b_x_rows_y = arith.truncf %b_x_rows_in0 : f32 to bf16
      linalg.yield %b_x_rows_y : bf16
    } -> tensor<?x32xbf16>
    %b_x = tensor.expand_shape %b_x_rows [[0, 1], [2]] output_shape [1, %T, 32] : tensor<?x32xbf16> into tensor<1x?x32xbf16>
    %strength_empty_c1 = arith.constant 1 : index
    %strength_empty_d1 = tensor.dim %b_x, %strength_empty_c1 : tensor<1x?x32xbf16>
    %strength_empty = tensor.empty(%strength_empty_d1) : tensor<1x?x32xf32>
    %strength = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1, d2)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%b_x : tensor<1x?x32xbf16>) outs(%strength_empty : tensor<1x?x32xf32>) {
    ^bb0(%strength_in0: bf16, %strength_old: f32):
      %strength_x0 = arith.extf %strength_in0 : bf16 to f32
      %strength_0 = arith.negf %strength_x0 : f32
      %strength_1 = math.exp %strength_0 : f32
      %strength_2 = arith.constant 1.0 : f32
      %strength_3 = arith.addf %strength_1, %strength_2 : f32
      %strength_4 = arith.constant 1.0 : f32
      %strength_5 = arith.divf %strength_4, %strength_3 : f32
      linalg.yield %strength_5 : f32
    } -> tensor<1x?x32xf32>
    %o_empty_c1 = arith.constant 1 : index
    %o_empty_d1 = tensor.dim %v, %o_empty_c1 : tensor<1x?x32x128xbf16>
    %o_empty = tensor.empty(%o_empty_d1) : tensor<1x?x32x128xbf16>
    %o, %state_final = gdn.recurrence ins(%q_norm, %k_norm, %v : tensor<1x?x32x128xbf16>, tensor<1x?x32x128xbf16>, tensor<1x?x32x128xbf16>) gate(%decay : tensor<1x?x32x128xf32>) beta(%strength : tensor<1x?x32xf32>) outs(%o_empty, %state : tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>) -> tensor<1x?x32x128xbf16>, tensor<1x32x128x128xf32>
    %z_inner_acc_c0 = arith.constant 0 : index
    %z_inner_acc_d0 = tensor.dim %x_rows, %z_inner_acc_c0 : tensor<?x2304xbf16>
    %z_inner_acc = tensor.empty(%z_inner_acc_d0) : tensor<?x128xf32>
    %z_inner_zero = linalg.fill ins(%zero : f32) outs(%z_inner_acc : tensor<?x128xf32>) -> tensor<?x128xf32>
    %z_inner_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%x_rows, %g_proj_0_weight : tensor<?x2304xbf16>, tensor<128x2304xbf16>) outs(%z_inner_zero : tensor<?x128xf32>) -> tensor<?x128xf32>
    %z_inner_empty_c0 = arith.constant 0 : index
    %z_inner_empty_d0 = tensor.dim %x_rows, %z_inner_empty_c0 : tensor<?x2304xbf16>
    %z_inner_empty = tensor.empty(%z_inner_empty_d0) : tensor<?x128xbf16>
    %z_inner = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%z_inner_sum : tensor<?x128xf32>) outs(%z_inner_empty : tensor<?x128xbf16>) {
    ^bb0(%z_inner_in0: f32, %z_inner_old: bf16):
      %z_inner_y = arith.truncf %z_inner_in0 : f32 to bf16
      linalg.yield %z_inner_y : bf16
    } -> tensor<?x128xbf16>
    %z_rows_acc_c0 = arith.constant 0 : index
    %z_rows_acc_d0 = tensor.dim %z_inner, %z_rows_acc_c0 : tensor<?x128xbf16>
    %z_rows_acc = tensor.empty(%z_rows_acc_d0) : tensor<?x4096xf32>
    %z_rows_zero = linalg.fill ins(%zero : f32) outs(%z_rows_acc : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %z_rows_sum = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%z_inner, %g_proj_1_weight : tensor<?x128xbf16>, tensor<4096x128xbf16>) outs(%z_rows_zero : tensor<?x4096xf32>) -> tensor<?x4096xf32>
    %z_rows_empty_c0 = arith.constant 0 : index
    %z_rows_empty_d0 = tensor.dim %z_inner, %z_rows_empty_c0 : tensor<?x128xbf16>
    %z_rows_empty = tensor.empty(%z_rows_empty_d0) : tensor<?x4096xbf16>
    %z_rows = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%z_rows_sum : tensor<?x4096xf32>) outs(%z_rows_empty : tensor<?x4096xbf16>) {
    ^bb0(%z_rows_in0: f32, %z_rows_old: bf16):
      %z_rows_y = arith.truncf %z_rows_in0 : f32 to bf16
      linalg.yield %z_rows_y : bf16
    } -> tensor<?x4096xbf16>
    %z = tensor.expand_shape %z_rows [[0, 1], [2, 3]] output_shape [1, %T, 32, 128] : tensor<?x4096xbf16> into tensor<1x?x32x128xbf16>
    %normed_empty_c1 = arith.constant 1 : index
    %normed_empty_d1 = tensor.dim %o, %normed_empty_c1 : tensor<1x?x32x128xbf16>
    %normed_empty = tensor.empty(%normed_empty_d1) : tensor<1x?x32x128xbf16>
    %normed = gdn.gated_rms_norm ins(%o, %z, %o_norm_weight : tensor<1x?x32x128xbf16>, tensor<1x?x32x128xbf16>, tensor<128xbf16>) outs(%normed_empty : tensor<1x?x32x128xbf16>) {eps = 1.0e-05, activation = #gdn.activation<sigmoid>} -> tensor<1x?x32x128xbf16>
    %normed_rows = tensor.collapse_shape %normed [[0, 1], [2, 3]] : tensor<1x?x32x128xbf16> into tensor<?x4096xbf16>
    %out_rows = tensor.collapse_shape %out [[0, 1], [2]] : tensor<1x?x2304xbf16> into tensor<?x2304xbf16>
    %y_rows_acc_c0 = arith.constant 0 : index
    %y_rows_acc_d0 = tensor.dim %normed_rows, %y_rows_acc_c0 : tensor<?x4096xbf16>
    %y_rows_acc = tensor.empty(%y_rows_acc_d0) : tensor<?x2304xf32>
    %y_rows_zero = linalg.fill ins(%zero : f32) outs(%y_rows_acc : tensor<?x2304xf32>) -> tensor<?x2304xf32>
    %y_rows = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>] ins(%normed_rows, %o_proj_weight : tensor<?x4096xbf16>, tensor<2304x4096xbf16>) outs(%y_rows_zero : tensor<?x2304xf32>) -> tensor<?x2304xf32>
    %y_rounded = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%y_rows : tensor<?x2304xf32>) outs(%out_rows : tensor<?x2304xbf16>) {
    ^bb0(%y_rounded_in0: f32, %y_rounded_old: bf16):
      %y_rounded_y = arith.truncf %y_rounded_in0 : f32 to bf16
      linalg.yield %y_rounded_y : bf16
    } -> tensor<?x2304xbf16>
    %y = tensor.expand_shape %y_rounded [[0, 1], [2]] output_shape [1, %T, 2304] : tensor<?x2304xbf16> into tensor<1x?x2304xbf16>
    return %y, %q_conv_final, %k_conv_final, %v_conv_final, %state_final : tensor<1x?x2304xbf16>, tensor<1x4096x3xbf16>, tensor<1x4096x3xbf16>, tensor<1x4096x3xbf16>, tensor<1x32x128x128xf32>
  }
}
