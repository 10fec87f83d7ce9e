// How a random program is run, and what is compared.
#include <cmath>
#include <fstream>
#include <functional>
#include <set>

#include <fmt/format.h>

#include "codegen/backends.h"
#include "core/aot/run_program.h"
#include "core/compare/compare.h"
#include "core/ir/print.h"
#include "core/load/session.h"
#include "tests/fuzz/programs.h"

namespace partita::fuzz {
namespace {

/// A program as a file holds it.
Artefact artefact(const Program& program) {
  Artefact a = Artefact::of_string(print(*program.graph));
  a.id = "program";
  a.kind = ArtefactKind::Graph;
  return a;
}

Result<TensorFile> run_by(const Program& program, const TensorFile& io, bool train, const CompileFn& compile) {
  RunOptions options;
  options.aot.train = train;
  options.forward = options.backward = compile;
  return run_program(artefact(program), io, options);
}

/// A hash of `n`: its bits have no pattern that strides could follow.
std::uint64_t mix(std::uint64_t n) {
  n = (n + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
  return (n ^ (n >> 31)) * 0x94d049bb133111eb >> 32;
}

/// The same inputs with every float moved by a few units in the last place, up or down by a pattern, in each memory
/// once.
Result<TensorFile> shaken(const TensorFile& io, std::uint64_t pattern) {
  TensorFile out = io;
  std::map<const Storage*, std::shared_ptr<Storage>> copies;
  for (auto& [key, t] : out.tensors) {
    if (key.starts_with("tangent.")) continue;
    std::shared_ptr<Storage>& copy = copies[t.storage.get()];
    if (!copy) {
      TRY(copy, Storage::allocate(t.storage->bytes()));
      std::copy_n(t.storage->data(), t.storage->bytes(), copy->data());
      const auto shake = [&]<class T>(T) {
        auto* data = reinterpret_cast<T*>(copy->data());
        for (std::size_t i = 0; i < copy->bytes() / sizeof(T); ++i)
          data[i] += data[i] * T(4) * std::numeric_limits<T>::epsilon() * T(mix(i + pattern) % 2 == 0 ? 1 : -1);
      };
      if (t.dtype == DType::Float32 || t.dtype == DType::Complex64) shake(float());
      if (t.dtype == DType::Float64) shake(double());
    }
    t.storage = copy;
  }
  return out;
}

/// Are the elements that differ ill-conditioned: does rounding, of the inputs or on the way, move them, too?
bool excused(const Tensor& expected, const Tensor& found, const std::vector<const Tensor*>& moved,
             const Tolerance& tolerance) {
  if (is_complex(expected.dtype)) return false;
  constexpr double amplified = 256;
  for (std::int64_t i = 0; i < expected.numel(); ++i) {
    const double a = expected.item_as_double(i), b = found.item_as_double(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    double change = 0;
    for (const Tensor* t : moved)
      if (t && t->sizes == expected.sizes)
        if (const double c = t->item_as_double(i); !(std::abs(c - a) <= change)) change = std::abs(c - a);
    if (!std::isfinite(a) || !std::isfinite(b) || !std::isfinite(change)) {
      if (std::isfinite(a) && std::isfinite(change) && std::abs(a) < 1e10) return false;
      continue;
    }
    if (std::abs(a - b) > tolerance.absolute + tolerance.relative * std::abs(a) + amplified * change) return false;
  }
  return true;
}

struct Runs {
  const Program& program;
  const TensorFile &expected, &found;
  std::function<const std::vector<TensorFile>&()> others;  ///< results of shaken inputs, and in double precision

  const Tensor* after(const TensorFile& file, const std::string& key) const {
    if (const Tensor* t = file.find("input_after." + key.substr(6))) return t;
    return program.io.find(key);
  }

  std::optional<std::string> compare(const std::string& name, const Tensor* a, const Tensor* b, bool strides,
                                     const std::function<const Tensor*(const TensorFile&)>& in) const {
    if (!a && !b) return std::nullopt;
    if (!a || !b) return name + (a ? " is missing" : " is not expected");
    const Tolerance tolerance = default_tolerance(a->dtype);
    const Difference d = compare_values(name, Value(*a), Value(*b), tolerance, strides);
    if (d.ok()) return std::nullopt;
    if (!d.layout.empty()) return name + ": " + d.layout.front();
    std::vector<const Tensor*> moved;
    for (const TensorFile& other : others()) moved.push_back(in(other));
    if (excused(*a, *b, moved, tolerance)) return std::nullopt;
    return fmt::format(
        "{}: {} of {} elements differ{}", name, d.wrong, d.numel,
        d.first_wrong ? fmt::format(", {} expected, {} found", d.first_wrong->expected, d.first_wrong->found) : "");
  }

  std::optional<std::string> difference() const {
    std::set<std::string> keys;
    for (const TensorFile* file : {&expected, &found})
      for (const auto& [key, tensor] : file->tensors)
        if (!key.starts_with("input_after.")) keys.insert(key);
    for (const std::string& key : keys)
      if (auto what = compare(key, expected.find(key), found.find(key), !key.starts_with("grad."),
                              [&](const TensorFile& file) { return file.find(key); }))
        return what;
    for (const auto& [key, tensor] : program.io.tensors)
      if (key.starts_with("input."))
        if (auto what = compare(key + " after the run", after(expected, key), after(found, key), true,
                                [&](const TensorFile& file) { return after(file, key); }))
          return what;
    for (const std::string& key : keys) {
      if (!key.starts_with("output.") || expected.find(key)->numel() == 0) continue;
      const auto owner = [&](const TensorFile& file) {
        const auto it = file.aliases.find(key);
        return it == file.aliases.end() ? std::string("its own memory")
                                        : fmt::format("{} from element {}", it->second.key, it->second.offset);
      };
      if (owner(expected) != owner(found))
        return fmt::format("{} lies in {}, when compiled in {}", key, owner(expected), owner(found));
    }
    return std::nullopt;
  }
};

}  // namespace

std::optional<std::string> check_program(const Program& program, bool train, std::optional<Refused>& refused) {
  const auto reference = [&](const TensorFile& io, std::string_view backend) {
    const CompileFn compile = (*find_backend(backend))->make({});
    return train ? run_by(program, io, true, compile) : run_as_it_is(artefact(program), io, {}, compile);
  };
  const Result<TensorFile> expected = reference(program.io, "interp");
  if (!expected) {
    if (expected.error().fault == Fault::Internal) return "interpreted: " + expected.error().line();
    refused = Refused{"interpreted: " + expected.error().code};
    return std::nullopt;
  }
  const Result<TensorFile> found = run_by(program, program.io, train, compiler->make({}));
  if (!found) {
    if (found.error().fault != Fault::Unsupported) return "compiled: " + found.error().line();
    refused = Refused{"compiled: " + found.error().code};
    return std::nullopt;
  }
  std::vector<TensorFile> others;
  const auto make_others = [&]() -> const std::vector<TensorFile>& {
    const auto keep = [&](Result<TensorFile> run) {
      if (run) others.push_back(*std::move(run));
    };
    if (!others.empty()) return others;
    for (std::uint64_t pattern : {0, 1000, 2000})
      if (const Result<TensorFile> io = shaken(program.io, pattern)) keep(reference(*io, "interp"));
    keep(reference(program.io, "f64"));
    return others;
  };
  return Runs{program, *expected, *found, make_others}.difference();
}

Status write_program(const Program& program, bool train, const std::string& stem) {
  std::ofstream(stem + ".py") << print(*program.graph);
  TRY_DO(write_safetensors(stem + ".io.safetensors", program.io));
  TRY(const TensorFile out, run_by(program, program.io, train, compiler->make({})));
  return write_safetensors(stem + ".out.safetensors", out);
}

}  // namespace partita::fuzz
