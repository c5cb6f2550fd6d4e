//===- GdnOpBase.td - base class of the gdn ops ------------*- tablegen -*-===//
//
// Part of gdn, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef GDN_DIALECT_GDN_IR_GDNOPBASE_TD
#define GDN_DIALECT_GDN_IR_GDNOPBASE_TD

include "gdn/Dialect/Gdn/IR/GdnAttrs.td"
include "mlir/Interfaces/DestinationStyleOpInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/TilingInterface.td"
include "mlir/Dialect/Linalg/IR/LinalgInterfaces.td"

// A ranked tensor, or a ranked memref after bufferization.
def Gdn_Shaped : AnyTypeOf<[AnyRankedTensor, AnyStridedMemRef],
                           "ranked tensor or memref">;

// Destination-style op on tensors or memrefs. On tensors it returns one result
// per `outs` operand, of the same type; on memrefs it writes them in place.
class Gdn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Gdn_Dialect, mnemonic, traits # [
        DestinationStyleOpInterface,
        DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
        DeclareOpInterfaceMethods<ReifyRankedShapedTypeOpInterface, ["reifyResultShapes"]>]> {
  let hasVerifier = 1;

  let extraClassDefinition = [{
    void $cppClass::getEffects(
        ::llvm::SmallVectorImpl<::mlir::SideEffects::EffectInstance<
            ::mlir::MemoryEffects::Effect>> &effects) {
      ::mlir::gdn::detail::getDestinationStyleEffects(*this, effects);
    }
    ::llvm::LogicalResult $cppClass::reifyResultShapes(
        ::mlir::OpBuilder &builder,
        ::mlir::ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
      return ::mlir::gdn::detail::reifyDestinationShapes(builder, *this,
                                                         reifiedReturnShapes);
    }
  }];

  code baseDeclaration = [{
    /// True on memrefs, false on tensors.
    bool isBufferized() { return hasPureBufferSemantics(); }
  }];
}

#endif // GDN_DIALECT_GDN_IR_GDNOPBASE_TD
