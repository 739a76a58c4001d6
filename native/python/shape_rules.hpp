// Predicates on layouts that the kernels' checks and shape rules share.
#pragma once

#include "kernel.hpp"

namespace anydml::python {

inline constexpr const char* kAxis = "axis: out of range";
inline constexpr const char* kRank = "operands: their ranks do not fit together";
inline constexpr const char* kSizes = "operands: their sizes do not fit together";
inline constexpr const char* kElements = "operands: their element types do not fit together";
inline constexpr const char* kIndices = "indices: expected int32, int64, uint32 or uint64";
inline constexpr const char* kClamp = "indices: there is no element to clamp them to";
inline constexpr const char* kNumbers = "attributes: wrong number or value";

// An axis or a rank as an int, or -1 if it is out of range.
inline int to_axis(Int number) {
  return number < 0 || number > kMaxRank ? -1 : static_cast<int>(number);
}

inline bool has(int axis, const Layout& layout) { return axis >= 0 && axis < layout.rank; }

inline bool same_element(const Tensor& a, const Tensor& b) {
  return a.element_size == b.element_size && a.type == b.type;
}

// As in NumPy, dates and complex numbers are distinct types, although here they are only moved.
inline bool same_type(PyArray_Descr* type, const Operand& other) {
  return type == other.descr || PyArray_EquivTypes(type, other.descr) != 0;
}
inline bool same_element(const Operand& a, const Operand& b) {
  return same_element(a.tensor, b.tensor) &&
         (a.descr == nullptr || b.descr == nullptr || same_type(a.descr, b));
}

// Whether an index type can hold every position on an axis of this many elements.
inline bool can_index(DataType type, Int size) {
  return type == DataType::int32    ? size <= Int{1} << 31
         : type == DataType::uint32 ? size <= Int{1} << 32
                                    : true;
}

// Compares all dimensions except one axis; -1 for no exception.
bool same_sizes(const Layout& a, const Layout& b, int but = -1);
bool fits_except(const Layout& a, const Layout& limits, int axis);
// `to` has the first `count` sizes of `from` from dimension `at` on.
bool begins_with(const Layout& to, int at, const Layout& from, int count);
// `to` continues at dimension `at` with the sizes of `from` from `first` on, and ends there.
bool ends_with(const Layout& to, int at, const Layout& from, int first);

// Whether all numbers of an operand, of an index type, are 0 to `last`.
bool all_within(const Operand& numbers, Int last);

// An argument as a non-negative axis of the layout; false if it is out of range.
inline bool axis_in(Int argument, const Layout& layout, int& axis) {
  if (argument < 0) argument += layout.rank;
  if (argument < 0 || argument >= layout.rank) return false;
  axis = static_cast<int>(argument);
  return true;
}

// The attributes of a kernel whose first argument is an axis and whose other arguments are numbers.
template <int kCount>
bool axis_numbers(const FunctionCall& call, Int* numbers, Results&) {
  int axis = 0;
  if (!axis_in(call.arguments[0], call.inputs[0].tensor.layout, axis)) return false;
  numbers[0] = axis;
  for (int i = 1; i < kCount; ++i) numbers[i] = call.arguments[i];
  return true;
}

// Adds sizes of a layout to a result's.
inline void push(Results::One& one, const Layout& from, int first, int last) {
  for (int i = first; i < last; ++i) one.dims[one.rank++] = from.sizes[i];
}
// A result of these dimensions, with an operand's type.
inline void begin(Results::One& one, const char* purpose, const Operand& like) {
  one.purpose = purpose;
  one.element = like.tensor.type;
  one.element_size = like.tensor.element_size;
  one.descr = like.descr;
  one.rank = 0;
}
// The same with another type.
inline void begin(Results::One& one, const char* purpose, Results::Type type, Int limit = 0) {
  one.purpose = purpose;
  one.type = type;
  one.limit = limit;
  one.rank = 0;
}
// A result of an operand's sizes and type.
inline void same_as(Results& results, const Operand& like) {
  begin(results.one[0], "the result", like);
  push(results.one[0], like.tensor.layout, 0, like.tensor.layout.rank);
}

}  // namespace anydml::python
