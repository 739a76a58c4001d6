# kernels.def: ANYDML_KERNEL(NAME) for each native/cpu/kernels/NAME.cpp (native/cpu/work.hpp), in a
# folder that everything of this directory includes from.
file(GLOB paths CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/kernels/*.cpp)
set(names "")
foreach(path IN LISTS paths)
  get_filename_component(name ${path} NAME_WE)
  string(APPEND names "ANYDML_KERNEL(${name})\n")
endforeach()
set(ANYDML_KERNEL_LIST ${CMAKE_CURRENT_BINARY_DIR}/kernel_list/kernels.def)
file(CONFIGURE OUTPUT ${ANYDML_KERNEL_LIST} CONTENT "${names}" @ONLY)
include_directories(${CMAKE_CURRENT_BINARY_DIR}/kernel_list)
