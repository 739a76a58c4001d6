# Links release wheels so that they run on every Linux with glibc 2.28 or newer, whatever this system
# has: names of functions that newer versions renamed are taken from stand-ins for the older
# libraries, and the compiler's C++ library is linked in. `auditwheel repair` says what is missing.
# Code is the same as without: only links differ.
foreach(library pthread:0 dl:2)
  string(REPLACE ":" ";" parts ${library})
  list(GET parts 0 name)
  list(GET parts 1 version)
  add_library(older_${name} SHARED ${CMAKE_CURRENT_LIST_DIR}/${name}.c)
  set_target_properties(older_${name} PROPERTIES OUTPUT_NAME ${name} SOVERSION ${version})
  target_compile_options(older_${name} PRIVATE -fno-builtin -w)
  target_link_options(older_${name} PRIVATE -nostdlib
                      -Wl,--version-script=${CMAKE_CURRENT_LIST_DIR}/older.map)
endforeach()
add_library(older_glibc OBJECT ${CMAKE_CURRENT_LIST_DIR}/glibc.c)
target_compile_options(older_glibc PRIVATE -fvisibility=hidden)

function(anydml_manylinux target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:older_glibc>)
  target_link_libraries(${target} PRIVATE older_pthread older_dl)
  # The stand-ins count even where they stand before what needs them.
  target_link_options(${target} PRIVATE -static-libstdc++ -Wl,--no-as-needed)
endfunction()
