// Blocks at offsets to the output: see gather.hpp. O(1) scratch.
#include "gather/cpu/gather.hpp"

namespace anydml::gather {
namespace {

// Cache lines that are prefetched ahead, and the most of one row.
constexpr Int kPrefetchLines = 160, kRowLines = 16;

// The distance in rows of this many lines.
Int prefetch_distance(Int lines) {
  return std::max<Int>(4, kPrefetchLines / std::max<Int>(1, lines));
}

template <class T>
void copy_items(char* target, Int step, const char* source, const Int* offsets, Int count,
                bool far) {
  constexpr Int size = sizeof(T);
  Int i = 0;
  if (far)
    for (; i < count - kPrefetchElements; ++i) {
      prefetch(source + offsets[i + kPrefetchElements]);
      store(target + i * step, load<T>(source + offsets[i]));
    }
  if (step == size)
    for (; i < count; ++i) store(target + i * size, load<T>(source + offsets[i]));
  else
    for (; i < count; ++i) store(target + i * step, load<T>(source + offsets[i]));
}

}  // namespace

void BlockCopier::copy(char* target, Int step, const char* source, const Int* offsets, Int count,
                       bool far, LineWriter* writer) const {
  const Int block = plan_.bytes();
  if (!plan_.contiguous() && plan_.single())
    return copy_single(target, step, source, offsets, count, far, writer);
  if (!plan_.contiguous()) {
    for (Int i = 0; i < count; ++i) plan_.run(target + i * step, source + offsets[i], 1, false);
    return;
  }
  if (is_element_size(block)) {
    alignas(64) char buffer[kIndexChunk * 16];
    char* const out = writer != nullptr ? buffer : target;
    const Int out_step = writer != nullptr ? block : step;
    with_element(static_cast<int>(block), [&](auto unit) {
      copy_items<decltype(unit)>(out, out_step, source, offsets, count, far);
    });
    if (writer != nullptr) writer->append(buffer, count * block);
    return;
  }
  // Rows: prefetches the first lines of a later one; the hardware prefetcher fetches the others.
  const Int head = std::min<Int>(block, 512),
            distance = far ? prefetch_distance(head / 64 + 1) : count;
  for (Int i = 0; i < count; ++i) {
    if (i + distance < count) {
      const char* const later = source + offsets[i + distance];
      for (Int at = 0; at < head; at += 64) prefetch(later + at);
      prefetch(later + head - 1);  // rows seldom start at a line
    }
    if (writer != nullptr)
      writer->append(source + offsets[i], block);
    else
      copy_short(target + i * step, source + offsets[i], block);
  }
}

void BlockCopier::copy_single(char* target, Int step, const char* source, const Int* offsets,
                              Int count, bool far, LineWriter* writer) const {
  const CopyPlan::Steps steps = plan_.steps();
  target += steps.to;
  source += steps.from;
  // As for rows, for the lines that hold elements.
  const Int length = (steps.count - 1) * steps.from_step + steps.size;
  const Int line = std::abs(steps.from_step) < 64 ? (length < 0 ? -64 : 64) : steps.from_step;
  const Int lines = std::min<Int>(length / line + 1, kRowLines);
  const Int distance = far ? prefetch_distance(lines) : count;
  for (Int i = 0; i < count; ++i) {
    if (i + distance < count) {
      const char* const later = source + offsets[i + distance];
      for (Int at = 0; at < lines; ++at) prefetch(later + at * line);
    }
    const char* const from = source + offsets[i];
    if (writer != nullptr)
      append_steps(*writer, from, steps.from_step, steps.count, steps.size);
    else
      copy_steps(target + i * step, steps.to_step, from, steps.from_step, steps.count, steps.size);
  }
}

}  // namespace anydml::gather
