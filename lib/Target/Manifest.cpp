//===- Manifest.cpp - how to launch a compiled function -------------------===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "gdn/Target/Manifest.h"
#include "gdn/Dialect/GdnTile/IR/GdnTile.h"
#include "gdn/Dialect/GdnTile/IR/TensorMap.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::gdn;
namespace json = llvm::json;

namespace {

class ManifestBuilder {
public:
  explicit ManifestBuilder(func::FuncOp function) : function(function) {}

  FailureOr<json::Object> build(StringRef target);

private:
  LogicalResult addArguments();
  LogicalResult addOp(Operation *op);
  LogicalResult addBuffer(memref::AllocOp op);
  LogicalResult addCheck(cf::AssertOp op);
  LogicalResult addLaunch(gpu::LaunchFuncOp op);
  LogicalResult addResults(func::ReturnOp op);

  /// The value as an expression; an error at `user` if it is none. A large one
  /// that is needed again becomes one of `values`.
  FailureOr<json::Value> getExpression(Value value, Operation *user);
  FailureOr<json::Value> makeExpression(Value value, Operation *user);
  FailureOr<json::Value> getSize(Value memref, int64_t dim, Operation *user);
  FailureOr<json::Value> getBinary(StringRef name, Operation *op);
  FailureOr<json::Object> getParameter(Value operand, Operation *user);
  FailureOr<json::Object> getTensorMap(gdn_tile::MakeTensorMapOp op);
  /// {"argument": i} or {"buffer": i} of the memory behind a memref.
  FailureOr<json::Object> getMemory(Value memref, Operation *user);

  func::FuncOp function;
  json::Array arguments, values, buffers, checks, launches, results;
  DenseMap<Value, int64_t> bufferNumbers;
  DenseMap<Value, json::Value> expressions;
};

/// Operators of an expression that may stand in several places.
constexpr int64_t kMostRepeated = 6;

int64_t countOperators(const json::Value &expression) {
  const json::Array *parts = expression.getAsArray();
  if (!parts || parts->front() == "dim" || parts->front() == "value")
    return 0;
  return 1 + countOperators((*parts)[1]) + countOperators((*parts)[2]);
}

/// The memref whose memory a view shares; all views here start at its start.
Value getRoot(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (!isa<memref::CastOp, memref::CollapseShapeOp, memref::ExpandShapeOp>(
            op))
      break;
    memref = op->getOperand(0);
  }
  return memref;
}

json::Value multiply(json::Value a, json::Value b) {
  std::optional<int64_t> x = a.getAsInteger(), y = b.getAsInteger();
  if (x && y)
    return *x * *y;
  if (x == 1)
    return b;
  if (y == 1)
    return a;
  return json::Array{"mul", std::move(a), std::move(b)};
}

FailureOr<std::string> getDtype(Type type, Operation *user) {
  if (type.isBF16() || type.isF16() || type.isF32() || type.isInteger(32) ||
      type.isInteger(64)) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  }
  return user->emitOpError("has elements of type ")
         << type << ", but a manifest knows bf16, f16, f32, i32 and i64";
}

} // namespace

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

FailureOr<json::Value> ManifestBuilder::getBinary(StringRef name,
                                                  Operation *op) {
  FailureOr<json::Value> a = getExpression(op->getOperand(0), op);
  FailureOr<json::Value> b = getExpression(op->getOperand(1), op);
  if (failed(a) || failed(b))
    return failure();
  return json::Value(json::Array{name.str(), std::move(*a), std::move(*b)});
}

FailureOr<json::Value> ManifestBuilder::getSize(Value memref, int64_t dim,
                                                Operation *user) {
  auto type = cast<MemRefType>(memref.getType());
  if (!type.isDynamicDim(dim))
    return json::Value(type.getDimSize(dim));
  if (auto argument = dyn_cast<BlockArgument>(memref))
    return json::Value(json::Array{"dim", argument.getArgNumber(), dim});
  if (auto cast = memref.getDefiningOp<memref::CastOp>())
    return getSize(cast.getSource(), dim, user);
  if (auto alloc = memref.getDefiningOp<memref::AllocOp>())
    return getExpression(alloc.getDynamicSizes()[type.getDynamicDimIndex(dim)],
                         user);
  if (auto collapse = memref.getDefiningOp<memref::CollapseShapeOp>()) {
    json::Value product = 1;
    SmallVector<ReassociationIndices> groups =
        collapse.getReassociationIndices();
    for (int64_t from : groups[dim]) {
      FailureOr<json::Value> size = getSize(collapse.getSrc(), from, user);
      if (failed(size))
        return failure();
      product = multiply(std::move(product), std::move(*size));
    }
    return product;
  }
  return user->emitOpError("depends on dimension ")
         << dim << " of a " << type << ", which a manifest cannot express";
}

FailureOr<json::Value> ManifestBuilder::getExpression(Value value,
                                                      Operation *user) {
  if (auto it = expressions.find(value); it != expressions.end())
    return it->second;
  FailureOr<json::Value> result = makeExpression(value, user);
  if (failed(result))
    return failure();
  if (!value.hasOneUse() && countOperators(*result) > kMostRepeated) {
    values.push_back(std::move(*result));
    result = json::Value(json::Array{"value", values.size() - 1});
  }
  expressions.try_emplace(value, *result);
  return result;
}

FailureOr<json::Value> ManifestBuilder::makeExpression(Value value,
                                                       Operation *user) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return json::Value(constant.getSExtValue());
  Operation *op = value.getDefiningOp();
  if (!op)
    return user->emitOpError("depends on an argument that is no array, which a "
                             "manifest cannot express");
  return TypeSwitch<Operation *, FailureOr<json::Value>>(op)
      .Case<arith::AddIOp>([&](auto) { return getBinary("add", op); })
      .Case<arith::SubIOp>([&](auto) { return getBinary("sub", op); })
      .Case<arith::MulIOp>([&](auto) { return getBinary("mul", op); })
      .Case<arith::FloorDivSIOp>(
          [&](auto) { return getBinary("floordiv", op); })
      // Sizes are not negative.
      .Case<arith::DivUIOp, arith::DivSIOp>(
          [&](auto) { return getBinary("floordiv", op); })
      .Case<arith::CeilDivSIOp, arith::CeilDivUIOp>(
          [&](auto) { return getBinary("ceildiv", op); })
      .Case<arith::MinSIOp, arith::MinUIOp>(
          [&](auto) { return getBinary("min", op); })
      .Case<arith::MaxSIOp, arith::MaxUIOp>(
          [&](auto) { return getBinary("max", op); })
      .Case<arith::IndexCastOp, arith::IndexCastUIOp>(
          [&](auto) { return getExpression(op->getOperand(0), user); })
      .Case([&](memref::DimOp dim) -> FailureOr<json::Value> {
        if (std::optional<int64_t> index = dim.getConstantIndex())
          return getSize(dim.getSource(), *index, dim);
        return dim.emitOpError("needs a constant dimension");
      })
      .Default([](Operation *op) -> FailureOr<json::Value> {
        return op->emitOpError("cannot be expressed in a manifest");
      });
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

FailureOr<json::Object> ManifestBuilder::getMemory(Value memref,
                                                   Operation *user) {
  Value root = getRoot(memref);
  if (auto argument = dyn_cast<BlockArgument>(root))
    return json::Object{{"argument", argument.getArgNumber()}};
  if (auto it = bufferNumbers.find(root); it != bufferNumbers.end())
    return json::Object{{"buffer", it->second}};
  return user->emitOpError("uses memory that is neither an argument nor a "
                           "buffer of the function");
}

LogicalResult ManifestBuilder::addArguments() {
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || !memref.getLayout().isIdentity())
      return function.emitOpError("argument ")
             << i << " has type " << type
             << ", but a manifest describes contiguous arrays";
    FailureOr<std::string> dtype = getDtype(memref.getElementType(), function);
    if (failed(dtype))
      return failure();
    json::Array shape;
    for (int64_t size : memref.getShape())
      shape.push_back(ShapedType::isDynamic(size) ? json::Value(nullptr)
                                                  : json::Value(size));
    auto name = function.getArgAttrOfType<StringAttr>(i, "gdn.name");
    arguments.push_back(
        json::Object{{"name", name ? name.str() : "arg" + std::to_string(i)},
                     {"dtype", *dtype},
                     {"shape", std::move(shape)}});
  }
  return success();
}

LogicalResult ManifestBuilder::addBuffer(memref::AllocOp op) {
  MemRefType type = op.getType();
  FailureOr<std::string> dtype = getDtype(type.getElementType(), op);
  if (failed(dtype))
    return failure();
  json::Array shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    FailureOr<json::Value> size = getSize(op.getResult(), dim, op);
    if (failed(size))
      return failure();
    shape.push_back(std::move(*size));
  }
  bufferNumbers[op.getResult()] = buffers.size();
  buffers.push_back(
      json::Object{{"dtype", *dtype}, {"shape", std::move(shape)}});
  return success();
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

LogicalResult ManifestBuilder::addCheck(cf::AssertOp op) {
  auto compare = op.getArg().getDefiningOp<arith::CmpIOp>();
  if (!compare || compare.getPredicate() != arith::CmpIPredicate::eq)
    return op.emitOpError("is no comparison for equality, which is all that a "
                          "manifest can express");
  FailureOr<json::Value> a = getExpression(compare.getLhs(), op);
  FailureOr<json::Value> b = getExpression(compare.getRhs(), op);
  if (failed(a) || failed(b))
    return failure();
  checks.push_back(json::Array{std::move(*a), std::move(*b)});
  return success();
}

FailureOr<json::Object>
ManifestBuilder::getTensorMap(gdn_tile::MakeTensorMapOp op) {
  FailureOr<json::Object> memory = getMemory(op.getSource(), op);
  gdn_tile::TensorMapType type = op.getType();
  FailureOr<std::string> dtype =
      getDtype(type.getSource().getElementType(), op);
  if (failed(memory) || failed(dtype))
    return failure();
  json::Array sizes, strides, box;
  for (const gdn_tile::TensorMapDim &dim : gdn_tile::getTensorMapDims(type)) {
    json::Value size = dim.sourceDims.empty() ? dim.box : 1;
    for (int64_t from : dim.sourceDims) {
      FailureOr<json::Value> factor = getSize(op.getSource(), from, op);
      if (failed(factor))
        return failure();
      size = multiply(std::move(size), std::move(*factor));
    }
    sizes.push_back(std::move(size));
    box.push_back(dim.box);
    // The driver takes the first one from the element type.
    if (box.size() > 1)
      strides.push_back(dim.strideBytes);
  }
  return json::Object{{"tensor_map", std::move(*memory)},
                      {"dtype", *dtype},
                      {"sizes", std::move(sizes)},
                      {"strides", std::move(strides)},
                      {"box", std::move(box)},
                      {"swizzle", gdn_tile::getSwizzleBytes(type)}};
}

FailureOr<json::Object> ManifestBuilder::getParameter(Value operand,
                                                      Operation *user) {
  if (isa<MemRefType>(operand.getType()))
    return getMemory(operand, user);
  if (auto map = operand.getDefiningOp<gdn_tile::MakeTensorMapOp>())
    return getTensorMap(map);
  FailureOr<json::Value> scalar = getExpression(operand, user);
  if (failed(scalar))
    return failure();
  return json::Object{{"scalar", std::move(*scalar)}, {"dtype", "i64"}};
}

LogicalResult ManifestBuilder::addLaunch(gpu::LaunchFuncOp op) {
  APInt block, shared(32, 0);
  Value sharedSize = op.getDynamicSharedMemorySize();
  if (!matchPattern(op.getBlockSizeX(), m_ConstantInt(&block)) ||
      (sharedSize && !matchPattern(sharedSize, m_ConstantInt(&shared))))
    return op.emitOpError("needs a constant block and shared memory size");
  for (Value size : {op.getGridSizeY(), op.getGridSizeZ(), op.getBlockSizeY(),
                     op.getBlockSizeZ()})
    if (!matchPattern(size, m_One()))
      return op.emitOpError("needs a one-dimensional grid and block");
  FailureOr<json::Value> grid = getExpression(op.getGridSizeX(), op);
  if (failed(grid))
    return failure();
  json::Array parameters;
  for (Value operand : op.getKernelOperands()) {
    FailureOr<json::Object> parameter = getParameter(operand, op);
    if (failed(parameter))
      return failure();
    parameters.push_back(std::move(*parameter));
  }
  json::Object launch{{"kernel", op.getKernelName().str()},
                      {"grid", std::move(*grid)},
                      {"block", block.getSExtValue()},
                      {"shared", shared.getSExtValue()},
                      {"parameters", std::move(parameters)}};
  if (op->hasAttr(gdn_tile::kOverlapsAttrName))
    launch["overlaps"] = true;
  if (op->hasAttr(gdn_tile::kBesideAttrName))
    launch["beside"] = true;
  launches.push_back(std::move(launch));
  return success();
}

LogicalResult ManifestBuilder::addResults(func::ReturnOp op) {
  for (auto [i, value] : llvm::enumerate(op.getOperands())) {
    auto type = dyn_cast<MemRefType>(value.getType());
    if (!type)
      return op.emitOpError("returns a ")
             << value.getType() << ", but a manifest describes arrays";
    FailureOr<json::Object> memory = getMemory(value, op);
    if (failed(memory))
      return failure();
    if (cast<MemRefType>(getRoot(value).getType()).getRank() != type.getRank())
      return op.emitOpError("returns result ")
             << i << " in another shape than its memory has";
    results.push_back(std::move(*memory));
  }
  return success();
}

LogicalResult ManifestBuilder::addOp(Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::AllocOp alloc) { return addBuffer(alloc); })
      .Case([&](cf::AssertOp check) { return addCheck(check); })
      .Case([&](gpu::LaunchFuncOp launch) { return addLaunch(launch); })
      .Case([&](func::ReturnOp result) { return addResults(result); })
      .Default([](Operation *op) -> LogicalResult {
        // Arithmetic and views are looked at where they are used.
        if (isMemoryEffectFree(op))
          return success();
        return op->emitOpError("cannot be expressed in a manifest");
      });
}

FailureOr<json::Object> ManifestBuilder::build(StringRef target) {
  if (!function.getBody().hasOneBlock())
    return function.emitOpError("has control flow, which a manifest cannot "
                                "express");
  if (failed(addArguments()))
    return failure();
  for (Operation &op : function.getBody().front())
    if (failed(addOp(&op)))
      return failure();
  std::string name = function.getName().str();
  json::Object result{{"version", 1},
                      {"target", target.str()},
                      {"function", name},
                      {"ptx", name + ".ptx"},
                      {"arguments", std::move(arguments)},
                      {"buffers", std::move(buffers)},
                      {"results", std::move(results)},
                      {"checks", std::move(checks)},
                      {"launches", std::move(launches)}};
  if (!values.empty())
    result["values"] = std::move(values);
  return result;
}

FailureOr<json::Object> mlir::gdn::buildManifest(func::FuncOp function,
                                                 StringRef target) {
  return ManifestBuilder(function).build(target);
}
