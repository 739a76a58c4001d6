// Dependent launches of one call (Queue::launch_dependent).
#pragma once

namespace anydml {

// Called at the beginning of a kernel: the next launch may be scheduled as soon as all blocks of
// this one are.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Called before the results of the previous launch are read: waits until it has ended.
__device__ inline void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace anydml
