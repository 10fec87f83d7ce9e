#pragma once
#include <memory>
#include <vector>

#include "codegen/cuda/cuda_kernel.h"
#include "codegen/cuda/driver.h"
#include "codegen/program/machine.h"

namespace partita::codegen {

/// A GPU. `device`: null until Machine::open(), which opens CudaDevice::of_process() (error cuda.device). It refuses
/// graphs with half types where it has no matrix instructions for them (error cuda.dtype).
std::shared_ptr<const Machine> cuda_machine(std::shared_ptr<CudaDevice> device);
/// This machine's CPU in a GPU's place (emulate.h).
std::shared_ptr<const Machine> emulated_machine();

/// The kernels of a source that one of these machines made.
const std::vector<CudaKernel>& cuda_kernels(const ProgramSource& source);

/// Puts values where of_process() has them. Error cuda.device.
Status place_on_device(std::vector<Value>& values);

}  // namespace partita::codegen
