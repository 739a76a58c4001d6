// A kernel as its callers know it: what it takes, whether operands fit together, how it runs.
//
// Each family registers its kernels (kernels/*.cpp), and three callers look them up by name: array
// functions and backends (call.cpp), the dispatch of compiled operators (compiled_call.cpp) and XLA
// (xla_ffi.cpp).
//
// The attributes of a call are numbers in the order that the kernel declares: integers as they are,
// bools as 0 and 1, words by their code, floats by the bits of a double, arrays one by one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "failures.hpp"
#include "loaded_kernels.hpp"
#include "numpy.hpp"
#include "runtime/cuda/queue.hpp"

namespace anydml::python {

// The members of a kernel's list of arrays, as arrays or (for short lists) as operands. A list may
// hold a million arrays, and an operand takes a kilobyte, so operands are created on demand.
struct List {
  const Operand* operands = nullptr;
  PyObject* const* arrays = nullptr;
  std::size_t count = 0;
  const Operand* same_layout = nullptr;  // of all members, if they share one
  void* const* addresses = nullptr;      // of members that share a layout

  // Member i; null if it is not an array that a kernel takes.
  const Tensor* get(std::size_t i, Operand& operand, void*& data) const {
    if (operands != nullptr) {
      data = operands[i].data;
      return &operands[i].tensor;
    }
    if (same_layout != nullptr) {
      data = addresses[i];
      return &same_layout->tensor;
    }
    if (!operand_of(arrays[i], operand)) return nullptr;
    data = operand.data;
    return &operand.tensor;
  }
};

// The arguments that a kernel runs with.
struct Call {
  const Operand* operands = nullptr;  // inputs, then outputs; without the members of the list
  List list;
  const Int* numbers = nullptr;
  std::size_t number_count = 0;    // for validate
  bool output_is_private = false;  // outputs are discarded if an index is bad
  int threads = 1;
  bool may_decline = false;  // the caller has a general path
};

// The outputs of a call: sizes and types, used to allocate results and to validate outputs.
constexpr int kMaxResults = 2;
constexpr npy_intp kMeasured = -1;  // a size that depends on the data
constexpr int kAnyRank = -1;
struct Results {
  enum Type {
    like,      // the element type of an operand
    index,     // an index type that can hold every position of `limit`
    number,    // any type with numbers
    sequence,  // a type that sequences support
    count,     // uint32, and one element
    any,
  };
  struct One {
    const char* purpose;  // for the message if the allocation fails
    Type type = like;
    DataType element;  // of an operand
    int element_size;
    PyArray_Descr* descr = nullptr;  // if one is to be made
    Int limit = 0;                   // of an index type
    bool at_most = false;            // an output may be smaller
    int rank;
    npy_intp dims[2 * kMaxRank];

    void set_measured(Int size) {
      for (int i = 0; i < rank; ++i)
        if (dims[i] == kMeasured) dims[i] = size;
    }
  } one[kMaxResults];
  Int equal = 0;               // for a list: the number of members like the first
  const Int* sizes = nullptr;  // for a list: its members' sizes on an axis, if these differ
  int axis = 0;  // for a list: the axis on which its members add up to the size of the first
};

// An argument of integers: None, a number, or a list of numbers or of pairs. All are exact ints,
// read in place, so no Python code may run until they have been read.
struct Integers {
  enum Depth { none, number, list, pairs } depth;
  int count;
  PyObject* const* items;

  // Number i, with all pairs flattened; false if it is too large for any size.
  bool get(int i, Int& value) const {
    PyObject* const object = depth == pairs ? PySequence_Fast_ITEMS(items[i / 2])[i % 2] : items[i];
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
  }
};

// The kinds of operands and arguments of a function call.
struct FunctionCall {
  const Operand* inputs = nullptr;
  List list;
  const Int* arguments = nullptr;
  const Integers* integers = nullptr;
};

constexpr Int kDeclined = -2;

enum class Lists { none, inputs, outputs };

// Words that stand for numbers, each for its position.
using Words = std::vector<const char*>;

// The types of the indices that functions return, by their words, the default first. Descriptors
// are borrowed: NumPy keeps its own types for the life of the process.
struct IndexType {
  PyArray_Descr* descr;
  DataType type;
};
extern const Words kIndexWords;
const IndexType& index_type(Int number);

struct Attribute {
  const char* name;
  const Words* words = nullptr;             // if it is a word
  enum { one, two, per_axis } count = one;  // numbers; an axis of the first operand
};

// How an argument of a function call becomes a number. An exact int, an exact bool, or a word
// stands for itself, and None for the first word. An index type is given by its word, or as NumPy's
// type or dtype. Integers become their position in FunctionCall::integers. Any other type becomes
// its descriptor's address (types.hpp). A constant is an int or float converted to the first
// operand's type, in its first eight bytes.
struct Argument {
  enum Kind {
    integer,
    boolean,
    word,
    word_or_none,
    index_type_or_none,
    integers,
    type,
    constant,
  } kind;
  const Words* words = nullptr;
};

// Allocates an output once the data have determined its size; null aborts the call. It may raise.
using MakeOutput = std::function<const Operand*(Int size)>;

// A kernel whose last output's size depends on the data: how functions call it, with inputs only.
struct Measured {
  void (*run)(const Call&, const MakeOutput&);
  void (*enqueue)(const Call&, cuda::Queue&, const MakeOutput&);
};

// Allocates the output while a GPU's queue waits for it: with the interpreter lock, and in the
// caller's context.
template <class Make>
const Operand* make_outside(cuda::Queue& queue, const Make& make, Int size) {
  queue.leave();
  const Operand* result = nullptr;
  {
    const nanobind::gil_scoped_acquire locked;
    result = make(size);
  }
  queue.enter();
  return result;
}

// How a kernel runs: on the CPU, and on a GPU.
struct Runs {
  // Returns -1, the position of the first bad index (Kernel::checks_indices), or kDeclined if a
  // function call turns out to be unusual. Releases the interpreter lock where that pays off.
  Int (*run)(const Call&);
  // Enqueues the same work on a GPU, without waiting for it.
  void (*enqueue)(const Call&, cuda::Queue&);
};

struct Kernel {
  const char* name;
  int inputs, outputs;  // without the list
  Lists list = Lists::none;
  std::vector<Attribute> attributes;  // in the order of Call::numbers

  // The outputs of a call, from its inputs and attributes, whose count has been checked; or a
  // message about what does not fit together. This is the only native shape rule: functions
  // allocate their results by it, and outputs from elsewhere are compared with it (`validate`) on
  // the very layouts that the kernel gets. Even if operands have changed since an earlier check, no
  // kernel reads or writes out of bounds. Only the inputs among the operands are validated.
  const char* (*shape)(const Call&, Results&);

  Runs runs;

  // For functions: their arguments, the attributes that these determine, and for a list of results
  // its members. Returns false for anything unusual; the general path then applies the rules of the
  // operator module. A test compares the two (tests/properties/test_shape_rules.py). Null: no
  // function.
  std::vector<Argument> arguments = {};
  bool (*attribute_numbers)(const FunctionCall&, Int* numbers, Results&) = nullptr;

  // What a GPU may have to compile for it.
  std::vector<cuda::Variant> (*variants)() = nullptr;

  std::optional<Measured> measured = {};
  bool checks_indices = false;  // operand 1, which points into operand 0
  bool writes_over = false;     // whether the output may be the first input
};

// How a kernel with a plan runs, which `plan_of` makes of the call. `Plan::run` and `launch`, of
// native/runtime/cuda/plans.hpp, take the operands in order, and whether the output is private if
// the kernel checks indices.
template <auto plan_of, auto launch, class Plan, class... Arguments>
Runs runs_by(void (*)(const Plan&, Arguments...)) {
  static constexpr bool kChecks = (std::is_same_v<Arguments, bool> || ...);
  static constexpr std::size_t kOperands = sizeof...(Arguments) - (kChecks ? 2 : 1);
  static constexpr auto pass = [](const Call& call, const auto& body) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      if constexpr (kChecks)
        return body(call.operands[i].data..., call.output_is_private);
      else
        return body(call.operands[i].data...);
    }(std::make_index_sequence<kOperands>());
  };
  const auto run = [](const Call& call) -> Int {
    const Plan plan = plan_of(call);
    const auto count = [&](std::size_t i) { return call.operands[i].tensor.layout.count(); };
    const Int last = count(kOperands - 1);
    const auto body = [&](auto... operands) { return run_plan(plan, operands..., call.threads); };
    if constexpr (kChecks)
      return without_gil(last + count(kOperands - 2), [&] { return pass(call, body); }).bad_index;
    without_gil(std::max(last, count(0)), [&] { pass(call, body); });
    return -1;
  };
  return {run, [](const Call& call, cuda::Queue& queue) {
            pass(call, [&](auto... operands) { launch(plan_of(call), operands..., queue); });
          }};
}
template <auto plan_of, auto launch>
Runs planned() {
  return runs_by<plan_of, launch>(launch);
}

constexpr std::size_t kMaxOperands = 16;      // of a call, without a list
constexpr std::size_t kFunctionOperands = 4;  // of a function call, which clears only these
constexpr std::size_t kMaxNumbers = 8;   // of a function call's arguments, and of its attributes
constexpr std::size_t kMaxIntegers = 3;  // arguments of integers
constexpr std::size_t kMaxValues = 3 + 3 * kMaxRank;  // of attributes that are arrays

// Kernels register where they are defined, before the module is initialised.
struct Registration {
  explicit Registration(Kernel kernel);
};
// The kernel of a name; ArgumentError for an unknown name.
const Kernel& find_kernel(const std::string& name);
const std::vector<Kernel>& all_kernels();

// Returns what is wrong with the number of a call's attributes or with their words, or null.
const char* validate_numbers(const Kernel& kernel, const Call& call);
// Returns what does not fit together in a call with outputs, or null.
const char* validate(const Kernel& kernel, const Call& call);
// The same for inputs and attributes alone.
const char* validate_input(const Kernel& kernel, const Call& call, Results& results);
// The same for the output of a `Measured` kernel alone, whose size has been measured.
const char* validate_measured(const Kernel& kernel, const Call& call, Int size);

// The position of a word; -1 for an unknown one.
Int code_of(PyObject* word, const Words& words);

// Writes the numbers of an attribute, which may be a list, and advances `next`; false for a value
// that has none, or too many. `constants`: the type of constants; null if a constant comes as
// numbers.
bool take_attribute(const Attribute& attribute, PyObject* value, const PyArray_Descr* constants,
                    Int*& next, const Int* end);

// The attributes of a call as numbers, by their names; missing ones are 0.
std::vector<Int> numbers_of(const Kernel& kernel, const nanobind::dict& attributes);

// The thread limit of a call outside every num_threads block.
int threads_of_process();

void bind_call(nanobind::module_& module);
void bind_numpy(nanobind::module_& module);
void bind_tensors(nanobind::module_& module);
void bind_compiled_call(nanobind::module_& module);
void bind_cuda(nanobind::module_& module);
void bind_xla(nanobind::module_& module);
void bind_call_key(nanobind::module_& module);
void bind_chain(nanobind::module_& module);

// A new array, or an AllocationError of the call that states the size and the purpose, with its
// number if there are several.
nanobind::object allocated(const char* call, const char* purpose, int rank, const npy_intp* dims,
                           PyArray_Descr* descr, Int number = -1);

}  // namespace anydml::python
