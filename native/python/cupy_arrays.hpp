// CuPy's arrays, for quick calls: read by their attributes, made by calling their class. The stream
// and the device that CuPy works on now are asked of C functions that its modules export.
#pragma once

#include <utility>

#include "failures.hpp"
#include "kernel.hpp"

namespace anydml::python::cupy {

// The class of CuPy's arrays, and the capsules of the functions "get_current_stream_ptr" and
// "get_device_id". Without functions of just these signatures nothing is taken.
void take(nanobind::object type, nanobind::object stream, nanobind::object device);

bool is_array(PyObject* object);  // of exactly that class

// An array on the device that CuPy works on now, as an operand. False without an exception for any
// other: the general way changes devices.
bool operand_of(PyObject* array, Operand& operand, int& device);

// A new array on that device.
class NewArray {
 public:
  // False without an exception where there is no memory: the general way says how much for what.
  bool make(const Results::One& one, Operand& operand);
  nanobind::object object() { return std::move(array_); }

 private:
  nanobind::object array_;
};

// The stream that CuPy works on now.
void* stream();

}  // namespace anydml::python::cupy
