//===- NVVMToPtx.cpp - modules of kernels to PTX --------------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Upstream's gpu-module-to-binary compiles a module as a whole and modules one
// after the other. The kernels here do not know of each other, and LLVM takes
// most of the time of a compilation.
//
//===----------------------------------------------------------------------===//

#include "gdn/Conversion/Passes.h"

#include "mlir/Dialect/GPU/IR/CompilationInterfaces.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::gdn {
#define GEN_PASS_DEF_CONVERTNVVMTOPTXPASS
#include "gdn/Conversion/Passes.h.inc"
} // namespace mlir::gdn

using namespace mlir;
using namespace mlir::gdn;

namespace {

/// A module that is compiled by itself, and its text.
struct Part {
  OwningOpRef<gpu::GPUModuleOp> module;
  SmallVector<char, 0> text;
};

struct ConvertNVVMToPtxPass
    : gdn::impl::ConvertNVVMToPtxPassBase<ConvertNVVMToPtxPass> {
  using ConvertNVVMToPtxPassBase::ConvertNVVMToPtxPassBase;

  void runOnOperation() override {
    SmallVector<gpu::GPUModuleOp> modules(
        getOperation().getOps<gpu::GPUModuleOp>());
    for (gpu::GPUModuleOp module : modules)
      if (failed(convertModule(module)))
        return signalPassFailure();
  }

private:
  LogicalResult convertModule(gpu::GPUModuleOp module);
};

/// A variable that is defined nowhere, such as all of shared memory.
bool isDeclaration(Operation &op) {
  auto global = dyn_cast<LLVM::GlobalOp>(op);
  return global && !global.getValueAttr() &&
         global.getInitializerRegion().empty() &&
         global.getLinkage() == LLVM::Linkage::External;
}

bool isKernel(Operation &op) {
  auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
  return function && !function.isDeclaration() &&
         function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
}

Part makePart(gpu::GPUModuleOp module) {
  auto copy = cast<gpu::GPUModuleOp>(module->cloneWithoutRegions());
  copy.getBodyRegion().emplaceBlock();
  return {copy, {}};
}

/// Takes the module apart: its declarations and one kernel each. A module with
/// anything else, which kernels may share, stays whole.
SmallVector<Part> split(gpu::GPUModuleOp module) {
  SmallVector<Part> parts;
  Block &body = *module.getBody();
  if (!llvm::all_of(
          body,
          [](Operation &op) { return isDeclaration(op) || isKernel(op); }) ||
      llvm::none_of(body, isKernel)) {
    parts.push_back({module.clone(), {}});
    return parts;
  }
  for (Operation &op : llvm::make_early_inc_range(body)) {
    if (!isKernel(op))
      continue;
    Part part = makePart(module);
    Block &target = *part.module->getBody();
    for (Operation &other : body)
      if (isDeclaration(other))
        target.push_back(other.clone());
    op.moveBefore(&target, target.end());
    parts.push_back(std::move(part));
  }
  return parts;
}

/// One text of all parts. Of what stands in front of the kernels, the version
/// is the same in all, and declarations may occur once; LLVM leaves out those
/// that a part does not use. The text ends with a zero, for the driver.
SmallVector<char, 0> join(ArrayRef<Part> parts) {
  std::string joined;
  llvm::StringSet<> declared;
  for (const Part &part : parts) {
    StringRef text = StringRef(part.text.data(), part.text.size()).rtrim('\0');
    size_t start = std::min(text.find(".visible .entry"), text.size());
    bool isFirst = joined.empty();
    for (StringRef line : llvm::split(text.take_front(start).rtrim(), '\n'))
      if (line.starts_with(".extern") ? declared.insert(line).second : isFirst)
        joined += (line + "\n").str();
    joined += text.drop_front(start);
  }
  joined.push_back('\0');
  return {joined.begin(), joined.end()};
}

} // namespace

LogicalResult ConvertNVVMToPtxPass::convertModule(gpu::GPUModuleOp module) {
  ArrayAttr targets = module.getTargetsAttr();
  if (!targets || targets.size() != 1)
    return module.emitError("needs one target, but has ")
           << (targets ? targets.size() : 0);
  auto target = dyn_cast<gpu::TargetAttrInterface>(targets[0]);
  if (!target)
    return module.emitError("has the target ")
           << targets[0] << ", which makes no code";
  gpu::TargetOptions options({}, {}, "", "", gpu::CompilationTarget::Assembly);
  SmallVector<Part> parts = split(module);
  LogicalResult made = failableParallelForEach(
      &getContext(), parts, [&](Part &part) -> LogicalResult {
        std::optional<SmallVector<char, 0>> text =
            target.serializeToObject(*part.module, options);
        if (!text)
          return part.module->emitError("cannot be compiled to PTX");
        part.text = std::move(*text);
        return success();
      });
  if (failed(made))
    return failure();
  OpBuilder builder(module);
  Attribute object = target.createObject(module, join(parts), options);
  gpu::BinaryOp::create(builder, module.getLoc(), module.getName(), nullptr,
                        builder.getArrayAttr({object}));
  module.erase();
  return success();
}
