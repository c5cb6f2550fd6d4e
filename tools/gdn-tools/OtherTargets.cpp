//===- OtherTargets.cpp - the backends that the wheel does not hold -------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's passes initialize every backend of the packaged LLVM. Here are the
// entry points of all but NVPTX and X86, so that 20 backends stay out of the
// program: a pass that asks for one reports that there is no such target.
//
//===----------------------------------------------------------------------===//

#define GDN_ABSENT(NAME)                                                       \
  void LLVMInitialize##NAME##TargetInfo() {}                                   \
  void LLVMInitialize##NAME##Target() {}                                       \
  void LLVMInitialize##NAME##TargetMC() {}                                     \
  void LLVMInitialize##NAME##AsmPrinter() {}                                   \
  void LLVMInitialize##NAME##AsmParser() {}

extern "C" {
GDN_ABSENT(AArch64)
GDN_ABSENT(AMDGPU)
GDN_ABSENT(ARM)
GDN_ABSENT(AVR)
GDN_ABSENT(BPF)
GDN_ABSENT(Hexagon)
GDN_ABSENT(Lanai)
GDN_ABSENT(LoongArch)
GDN_ABSENT(M68k)
GDN_ABSENT(MSP430)
GDN_ABSENT(Mips)
GDN_ABSENT(PowerPC)
GDN_ABSENT(RISCV)
GDN_ABSENT(SPIRV)
GDN_ABSENT(Sparc)
GDN_ABSENT(SystemZ)
GDN_ABSENT(VE)
GDN_ABSENT(WebAssembly)
GDN_ABSENT(XCore)
GDN_ABSENT(Xtensa)
}
