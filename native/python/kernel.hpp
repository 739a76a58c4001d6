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

#include "../cuda/host/queue.hpp"
#include "failures.hpp"
#include "loaded_kernels.hpp"
#include "numpy.hpp"

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

// A kernel that rejects indices out of range: which operand holds them, and what they point into.
struct ChecksIndices {
  int indices, data;
};

struct Kernel {
  const char* name;
  int inputs, outputs;  // without the list
  Lists list = Lists::none;
  std::vector<Attribute> attributes;  // in the order of Call::numbers

  // The outputs of a call, from its inputs and attributes, whose count has been checked; or a
  // message about what does not fit together. This is the only shape rule: functions allocate their
  // results by it, and outputs from elsewhere are compared with it (`validate`) on the very layouts
  // that the kernel gets. Even if operands have changed since an earlier check, no kernel reads or
  // writes out of bounds. Only the inputs among the operands are validated.
  const char* (*shape)(const Call&, Results&);

  // Returns -1, the position of the first bad index (ChecksIndices), or kDeclined if a function
  // call turns out to be unusual. Releases the interpreter lock where that pays off.
  Int (*run)(const Call&);

  // For functions: their arguments, the attributes that these determine, and for a list of results
  // its members. Returns false for anything unusual; the general path then applies the rules of the
  // operator module. A test compares the two (tests/properties/test_shape_rules.py). Null: no
  // function.
  std::vector<Argument> arguments = {};
  bool (*attribute_numbers)(const FunctionCall&, Int* numbers, Results&) = nullptr;

  // Enqueues the same work on a GPU, without waiting for it, and lists the variants that a GPU may
  // have to compile for it. Null: not supported yet.
  void (*enqueue)(const Call&, cuda::Queue&) = nullptr;
  std::vector<cuda::Variant> (*variants)() = nullptr;

  std::optional<Measured> measured = {};
  std::optional<ChecksIndices> checks_indices = {};
  bool writes_over = false;  // whether the output may be the first input
};

// `Kernel::run` of a kernel that has a plan, which `plan_of` makes of the call: `Plan::run` takes
// the operands in order, and whether the output is private if it checks indices.
template <auto plan_of, class Result, class Plan, class... Arguments>
Int run_by(Result (Plan::*)(Arguments...) const, const Call& call) {
  constexpr bool kChecks = !std::is_void_v<Result>;
  constexpr std::size_t kOperands = sizeof...(Arguments) - (kChecks ? 2 : 1);
  const Plan plan = plan_of(call);
  const Operand* const o = call.operands;
  const auto count = [&](std::size_t i) { return o[i].tensor.layout.count(); };
  const Int last = count(kOperands - 1);
  Status status;
  const auto run = [&]<std::size_t... i>(std::index_sequence<i...>) {
    if constexpr (kChecks)
      status = run_plan(plan, o[i].data..., call.output_is_private, call.threads);
    else
      run_plan(plan, o[i].data..., call.threads);
  };
  without_gil(kChecks ? last + count(kOperands - 2) : std::max(last, count(0)),
              [&] { run(std::make_index_sequence<kOperands>()); });
  return status.bad_index;
}
template <auto plan_of>
Int run_planned(const Call& call) {
  using Plan = std::invoke_result_t<decltype(plan_of), const Call&>;
  return run_by<plan_of>(&Plan::run, call);
}

// `Kernel::enqueue` of the same plan, by a function of native/cuda/plans.hpp.
template <auto plan_of, class Plan, class... Arguments>
void enqueue_by(void (*launch)(const Plan&, Arguments...), const Call& call, cuda::Queue& queue) {
  constexpr bool kChecks = (std::is_same_v<Arguments, bool> || ...);
  const auto enqueue = [&]<std::size_t... i>(std::index_sequence<i...>) {
    if constexpr (kChecks)
      launch(plan_of(call), call.operands[i].data..., call.output_is_private, queue);
    else
      launch(plan_of(call), call.operands[i].data..., queue);
  };
  enqueue(std::make_index_sequence<sizeof...(Arguments) - (kChecks ? 2 : 1)>());
}
template <auto plan_of, auto launch>
void enqueue_planned(const Call& call, cuda::Queue& queue) {
  enqueue_by<plan_of>(launch, call, queue);
}

// `Kernel::run` for a kernel of native/cpu/kernels with this number of operands.
template <Status (*function)(const Work&), int operands>
Int run_work(const Call& call) {
  Work::Memory memory[operands];
  Int elements = 0;
  for (int i = 0; i < operands; ++i) {
    memory[i] = {&call.operands[i].tensor, call.operands[i].data};
    elements += memory[i].tensor->layout.count();
  }
  const Work work{memory, call.numbers, call.output_is_private, call.threads};
  Status status;
  without_gil(elements, [&] { status = call_kernel<function>(work); });
  return status.bad_index;
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

void bind_call(nanobind::module_& module);  // after bind_cuda
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
