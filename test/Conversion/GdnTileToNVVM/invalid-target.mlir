// RUN: not gdn-opt %s -convert-gdn-tile-to-nvvm=target=sm_99 2>&1 | FileCheck %s

// CHECK: error: unknown target 'sm_99': expected one of sm_80, sm_86, sm_89, sm_90a, sm_100, sm_120
module {
}
