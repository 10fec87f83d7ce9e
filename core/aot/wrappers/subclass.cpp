#include <algorithm>

#include "core/aot/wrapper.h"

namespace partita {
namespace {

using Items = std::vector<SubclassWrapper::Item>;

/// Puts the lists' items in their places.
void flatten(const Items& items, std::vector<Value>& values) {
  std::vector<Value> flat;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const ValueList* inner = i < items.size() && !items[i].attributes.empty() ? values[i].get<ValueList>() : nullptr;
    if (inner)
      flat.insert(flat.end(), inner->begin(), inner->end());
    else
      flat.push_back(std::move(values[i]));
  }
  values = std::move(flat);
}

void group(const Items& items, std::vector<Value>& values) {
  std::vector<Value> grouped;
  auto next = values.begin();
  for (const SubclassWrapper::Item& item : items) {
    if (item.attributes.empty()) {
      grouped.push_back(std::move(*next++));
      continue;
    }
    const auto end = next + static_cast<std::ptrdiff_t>(item.attributes.size());
    const bool any = std::any_of(next, end, [](const Value& v) { return !v.is_none(); });
    grouped.push_back(any ? Value(ValueList(next, end)) : Value());
    next = end;
  }
  values = std::move(grouped);
}

}  // namespace

BoxedFn SubclassWrapper::post_compile(BoxedFn inner) const {
  return [w = *this, inner = std::move(inner)](std::vector<Value>& inputs) -> Result<std::vector<Value>> {
    if (inputs.size() != w.inputs.size()) return inner(inputs);
    flatten(w.inputs, inputs);
    TRY(std::vector<Value> values, inner(inputs));
    group(w.inputs, inputs);
    group(w.outputs, values);
    return values;
  };
}

}  // namespace partita
