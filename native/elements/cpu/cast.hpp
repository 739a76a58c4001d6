// Blocks of elements as another type.
#pragma once

#include "elements/cpu/map.hpp"

namespace anydml {

// Two different types, both known. Source and target do not overlap.
class CastMap : public ElementMap {
 public:
  using Step = void (*)(const char* source, char* target, Int count);

  CastMap(DataType from, DataType to);
  void run(const char* source, char* target, Int count) const override;

 private:
  Step first_ = nullptr, last_;  // two steps with FLOAT32 between them, or the last one alone
};

}  // namespace anydml
