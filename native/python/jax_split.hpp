// Splits of small JAX arrays that come again and again, as programs that JAX has compiled.
//
// JAX takes 2.5 us to take over an array by DLPack, and makes the results of a program of its own
// in .9 us each. To compile one takes some 30 ms: that is for splits that have come often.
#pragma once

#include "kernel.hpp"

namespace anydml::python::jax {

// What makes a program of (array, sizes, axis), or None where there is none.
void take_split_maker(nanobind::object maker);

// The parts of the array, in a tuple; invalid where the split has to be done otherwise.
nanobind::object kept_split(PyObject* array, const Operand& whole, const Results& results);

}  // namespace anydml::python::jax
