// What compiled kernels need of a device: from the sections of a cubin, which is an ELF file, and the assembler's log.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>

#include <elf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "codegen/cuda/compile_cuda.h"
#include "core/base/text.h"

namespace partita::codegen {
namespace {

// The limits of the CUDA programming guide's table "Technical Specifications per Compute Capability". Shared memory is
// the multiprocessor's at its largest, and what one block can have of it.
constexpr int kib = 1024;
const CudaArchitecture architectures[] = {
    {"sm_75", 65536, 32, 16, 64 * kib, 64 * kib},    {"sm_80", 65536, 64, 32, 164 * kib, 163 * kib},
    {"sm_86", 65536, 48, 16, 100 * kib, 99 * kib},   {"sm_87", 65536, 48, 16, 164 * kib, 163 * kib},
    {"sm_89", 65536, 48, 24, 100 * kib, 99 * kib},   {"sm_90", 65536, 64, 32, 228 * kib, 227 * kib},
    {"sm_100", 65536, 64, 32, 228 * kib, 227 * kib}, {"sm_120", 65536, 48, 24, 100 * kib, 99 * kib},
};

constexpr Elf64_Half em_cuda = 190;
// Attributes of the section .nv.info that concern a function; each has a symbol's index and a number.
constexpr unsigned char attribute_with_pair = 4, frame_size = 0x11, register_count = 0x2f;

template <class T>
std::optional<T> at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data() + offset, sizeof out);
  return out;
}

std::string_view text_at(std::string_view bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) return {};
  return bytes.substr(offset).substr(0, bytes.substr(offset).find('\0'));
}

/// The number before `words` in a line: 12 of "12 bytes spill stores"; 0 without it.
int number_before(std::string_view line, std::string_view words) {
  const auto end = line.find(words);
  if (end == line.npos) return 0;
  auto begin = end;
  while (begin > 0 && line[begin - 1] == ' ') --begin;
  const auto last = begin;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  int n = 0;
  std::from_chars(line.data() + begin, line.data() + last, n);
  return n;
}

/// The log has "Function properties for NAME", in the next line the bytes that are spilled, and then "Used ..." with
/// the function's own shared memory: from sm_90 on its section has the system's, too.
void read_log(std::string_view log, std::map<std::string, CudaResources>& functions) {
  CudaResources* current = nullptr;
  for (const std::string_view line : lines_of(log)) {
    constexpr std::string_view begins = "Function properties for ";
    if (const auto found = line.find(begins); found != line.npos) {
      const auto entry = functions.find(std::string(line.substr(found + begins.size())));
      current = entry == functions.end() ? nullptr : &entry->second;
    } else if (current && line.find("spill stores") != line.npos) {
      current->spill_stores = number_before(line, " bytes spill stores");
      current->spill_loads = number_before(line, " bytes spill loads");
    } else if (current && line.find("Used ") != line.npos) {
      current->shared_bytes = number_before(line, " bytes smem");
      current = nullptr;
    }
  }
}

}  // namespace

Result<CudaArchitecture> find_cuda_architecture(std::string_view name) {
  std::vector<std::string> names;
  for (const CudaArchitecture& a : architectures) {
    if (a.name == name) return a;
    names.push_back(a.name);
  }
  return input_error("cuda.architecture",
                     fmt::format("no architecture {}; there are {}", name, fmt::join(names, ", ")));
}

Result<std::vector<CudaArchitecture>> cuda_architectures(const Config& config) {
  std::vector<CudaArchitecture> out;
  for (const std::string& name : config.cuda_architectures) {
    TRY(CudaArchitecture found, find_cuda_architecture(name));
    out.push_back(std::move(found));
  }
  return out;
}

Result<std::vector<CudaResources>> cuda_resources(const CudaBinary& binary) {
  const std::string_view bytes = binary.cubin;
  const auto damaged = [](const char* what) {
    Diagnostic out = input_error("cuda.binary", fmt::format("the compiled kernel is no ELF file of a GPU: {}", what));
    out.fault = Fault::Internal;
    return out;
  };
  const auto header = at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != em_cuda)
    return damaged("it begins with other bytes");
  std::vector<Elf64_Shdr> sections;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto section = at<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
    if (!section) return damaged("its sections lie beyond its end");
    sections.push_back(*section);
  }
  const auto contents = [&](const Elf64_Shdr& s) -> std::string_view {
    if (s.sh_type == SHT_NOBITS || s.sh_offset > bytes.size() || s.sh_size > bytes.size() - s.sh_offset) return {};
    return bytes.substr(s.sh_offset, s.sh_size);
  };
  if (header->e_shstrndx >= sections.size()) return damaged("it has no names of sections");
  const std::string_view section_names = contents(sections[header->e_shstrndx]);

  std::map<std::string, CudaResources> functions;
  std::string_view symbols, symbol_names, info;
  for (const Elf64_Shdr& s : sections) {
    const std::string_view name = text_at(section_names, s.sh_name);
    if (s.sh_type == SHT_SYMTAB && s.sh_link < sections.size()) {
      symbols = contents(s);
      symbol_names = contents(sections[s.sh_link]);
    }
    if (name == ".nv.info") info = contents(s);
    if (name.starts_with(".text.")) {
      const std::string function(name.substr(6));
      functions[function].function = function;
    }
  }
  for (const Elf64_Shdr& s : sections) {
    const std::string_view name = text_at(section_names, s.sh_name);
    // ".nv.shared.NAME"; ".nv.constant0.NAME", where the digit is the bank.
    const auto of = [&](std::string_view prefix, std::size_t more) -> CudaResources* {
      if (!name.starts_with(prefix) || name.size() <= prefix.size() + more) return nullptr;
      const auto found = functions.find(std::string(name.substr(prefix.size() + more)));
      return found == functions.end() ? nullptr : &found->second;
    };
    if (CudaResources* f = of(".nv.shared.", 0)) f->shared_bytes = static_cast<int>(s.sh_size);
    if (CudaResources* f = of(".nv.constant", 2)) f->constant_bytes += static_cast<int>(s.sh_size);
  }
  for (std::uint64_t offset = 0; const auto format = at<unsigned char>(info, offset);) {
    const auto attribute = at<unsigned char>(info, offset + 1);
    const auto size = at<std::uint16_t>(info, offset + 2);
    if (!attribute || !size) break;
    if (*format != attribute_with_pair) {
      offset += 4;
      continue;
    }
    const auto symbol = at<std::uint32_t>(info, offset + 4), value = at<std::uint32_t>(info, offset + 8);
    offset += 4 + *size;
    if (*size != 8 || !symbol || !value) continue;
    const auto entry = at<Elf64_Sym>(symbols, std::uint64_t{*symbol} * sizeof(Elf64_Sym));
    const auto function = entry ? functions.find(std::string(text_at(symbol_names, entry->st_name))) : functions.end();
    if (function == functions.end()) continue;
    if (*attribute == register_count) function->second.registers = static_cast<int>(*value);
    if (*attribute == frame_size) function->second.frame_bytes = static_cast<int>(*value);
  }
  read_log(binary.log, functions);
  std::vector<CudaResources> out;
  for (auto& [name, f] : functions) {
    if (f.registers == 0) return damaged("a function has no register count");
    out.push_back(std::move(f));
  }
  return out;
}

Occupancy occupancy(const CudaResources& kernel, int threads, std::size_t dynamic_shared,
                    const CudaArchitecture& architecture) {
  constexpr int warp = 32, parts = 4;  // of a multiprocessor, each with registers of its own
  constexpr int register_unit = 256;   // in which a warp gets registers
  constexpr std::size_t shared_unit = 128;
  const bool reserves = architecture.name != "sm_75";  // 1 KiB of each block's shared memory is the system's
  const int warps = (std::max(threads, 1) + warp - 1) / warp;
  const int warp_registers = (kernel.registers * warp + register_unit - 1) / register_unit * register_unit;
  const std::size_t asked = static_cast<std::size_t>(kernel.shared_bytes) + dynamic_shared;
  const std::size_t shared = (asked + (reserves ? kib : 0) + shared_unit - 1) / shared_unit * shared_unit;
  Occupancy out{architecture.warps / warps, 0, 0, "warps"};
  const auto limit = [&](int blocks, std::string_view bound) {
    if (blocks < out.blocks) out.blocks = blocks, out.bound = bound;
  };
  limit(architecture.blocks, "blocks");
  if (warp_registers > 0) limit(architecture.registers / parts / warp_registers * parts / warps, "registers");
  if (asked > static_cast<std::size_t>(architecture.block_shared_bytes))
    limit(0, "shared memory");
  else if (shared > 0)
    limit(static_cast<int>(static_cast<std::size_t>(architecture.shared_bytes) / shared), "shared memory");
  out.warps = out.blocks * warps;
  out.share = static_cast<double>(out.warps) / architecture.warps;
  return out;
}

}  // namespace partita::codegen
