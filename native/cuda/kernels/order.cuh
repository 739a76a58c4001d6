// Launches of one call that follow each other closely (Queue::launch_behind).
#pragma once

namespace anydml {

// At the beginning of a kernel: the launch behind it may take its places as soon as all blocks of
// this one have theirs.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Before anything is read that the launch before has written: it has ended.
__device__ inline void await_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace anydml
