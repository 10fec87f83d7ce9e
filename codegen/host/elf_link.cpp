// Links x86-64 ELF objects into this process: reads sections and symbols, copies them to one mapping with a global
// offset table for each object, applies relocations, makes it executable. What it does not know it refuses.
#include "codegen/host/elf_link.h"

#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>

#include <dlfcn.h>
#include <elf.h>
#include <sys/mman.h>

namespace partita::codegen {
namespace {

/// Memory for code, freed with it.
class CodeMemory {
 public:
  explicit CodeMemory(std::size_t bytes) : bytes_(bytes) {
    void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at != MAP_FAILED) at_ = static_cast<std::byte*>(at);
  }
  ~CodeMemory() {
    if (at_) ::munmap(at_, bytes_);
  }
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;
  std::byte* at() const { return at_; }
  bool make_executable() const { return ::mprotect(at_, bytes_, PROT_READ | PROT_EXEC) == 0; }

 private:
  std::byte* at_ = nullptr;
  std::size_t bytes_;
};

class ElfCode final : public LoadedCode {
 public:
  Result<void*> find(const std::string& symbol) override {
    const auto found = functions.find(symbol);
    if (found == functions.end()) return input_error("codegen.link", "machine code has no function " + symbol);
    return found->second;
  }
  std::unordered_map<std::string, void*> functions;
  std::unique_ptr<CodeMemory> memory;
};

/// A table of structs in an object; empty when it does not lie within it.
template <class T>
std::vector<T> table(std::string_view object, std::uint64_t offset, std::uint64_t count) {
  if (offset > object.size() || count > (object.size() - offset) / sizeof(T)) return {};
  std::vector<T> out(count);
  if (count > 0) std::memcpy(out.data(), object.data() + offset, count * sizeof(T));
  return out;
}

std::string_view name_at(std::string_view names, std::uint64_t offset) {
  if (offset >= names.size()) return {};
  const std::string_view rest = names.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

/// One relocatable object.
class Object {
 public:
  explicit Object(std::string_view bytes) : bytes_(bytes) {}

  /// Reads the tables, and gives each section that is loaded a place from `end` on.
  bool read(std::uint64_t& end) {
    const auto headers = table<Elf64_Ehdr>(bytes_, 0, 1);
    if (headers.empty()) return false;
    const Elf64_Ehdr& h = headers[0];
    if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
        h.e_ident[EI_DATA] != ELFDATA2LSB || h.e_machine != EM_X86_64 || h.e_type != ET_REL ||
        h.e_shentsize != sizeof(Elf64_Shdr))
      return false;
    sections_ = table<Elf64_Shdr>(bytes_, h.e_shoff, h.e_shnum);
    if (sections_.empty()) return false;
    places_.resize(sections_.size());
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const Elf64_Shdr& s = sections_[i];
      if (s.sh_type == SHT_SYMTAB && !read_symbols(s)) return false;
      if (s.sh_type != SHT_NULL && s.sh_type != SHT_NOBITS && !contents(s)) return false;
      if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_X86_64_UNWIND) continue;  // nothing unwinds through kernels
      if (s.sh_type != SHT_PROGBITS || (s.sh_flags & (SHF_WRITE | SHF_TLS)) || s.sh_addralign > 4096) return false;
      const std::uint64_t align = std::max<std::uint64_t>(s.sh_addralign, 1);
      end = (end + align - 1) / align * align;
      places_[i] = end;
      end += s.sh_size;
    }
    return true;
  }

  /// Copies the sections to `base`, and applies the relocations. `got`: where entries of the global offset table begin,
  /// one for each symbol.
  bool load(std::byte* base, std::byte* got, const std::unordered_map<std::string, void*>& runtime, ElfCode& out) {
    for (std::size_t i = 0; i < sections_.size(); ++i)
      if (places_[i]) {
        const std::string_view from = *contents(sections_[i]);
        if (!from.empty()) std::memcpy(base + *places_[i], from.data(), from.size());
      }
    std::vector<std::uint64_t> values(symbols_.size());
    for (std::size_t i = 1; i < symbols_.size(); ++i) {
      const auto value = value_of(symbols_[i], base, got, runtime);
      if (!value) return false;
      values[i] = *value;
      std::memcpy(got + i * 8, &*value, 8);
      const std::string_view name = name_at(names_, symbols_[i].st_name);
      if (ELF64_ST_TYPE(symbols_[i].st_info) == STT_FUNC && ELF64_ST_BIND(symbols_[i].st_info) == STB_GLOBAL)
        out.functions.emplace(name, reinterpret_cast<void*>(values[i]));
    }
    for (const Elf64_Shdr& s : sections_) {
      if (s.sh_type == SHT_REL) return false;
      if (s.sh_type != SHT_RELA || s.sh_info >= sections_.size() || !places_[s.sh_info]) continue;
      for (const Elf64_Rela& r : table<Elf64_Rela>(bytes_, s.sh_offset, s.sh_size / sizeof(Elf64_Rela)))
        if (!relocate(r, sections_[s.sh_info], base + *places_[s.sh_info], got, values)) return false;
    }
    return true;
  }

  std::size_t symbols() const { return symbols_.size(); }

 private:
  std::optional<std::string_view> contents(const Elf64_Shdr& s) const {
    if (s.sh_offset > bytes_.size() || s.sh_size > bytes_.size() - s.sh_offset) return std::nullopt;
    return bytes_.substr(s.sh_offset, s.sh_size);
  }

  bool read_symbols(const Elf64_Shdr& s) {
    symbols_ = table<Elf64_Sym>(bytes_, s.sh_offset, s.sh_size / sizeof(Elf64_Sym));
    if (s.sh_link >= sections_.size()) return false;
    const auto names = contents(sections_[s.sh_link]);
    if (names) names_ = *names;
    return names.has_value();
  }

  std::optional<std::uint64_t> value_of(const Elf64_Sym& symbol, std::byte* base, std::byte* got,
                                        const std::unordered_map<std::string, void*>& runtime) const {
    if (symbol.st_shndx == SHN_ABS) return symbol.st_value;
    if (symbol.st_shndx == SHN_UNDEF) {
      const std::string name(name_at(names_, symbol.st_name));
      if (name == "_GLOBAL_OFFSET_TABLE_") return reinterpret_cast<std::uint64_t>(got);
      const auto own = runtime.find(name);
      void* found = own != runtime.end() ? own->second : ::dlsym(RTLD_DEFAULT, name.c_str());
      return found ? std::optional(reinterpret_cast<std::uint64_t>(found)) : std::nullopt;
    }
    const std::size_t section = symbol.st_shndx;
    if (section >= sections_.size() || !places_[section] || symbol.st_value > sections_[section].sh_size)
      return std::nullopt;
    return reinterpret_cast<std::uint64_t>(base) + *places_[section] + symbol.st_value;
  }

  static bool relocate(const Elf64_Rela& r, const Elf64_Shdr& section, std::byte* at, std::byte* got,
                       const std::vector<std::uint64_t>& values) {
    const std::uint64_t symbol = ELF64_R_SYM(r.r_info), type = ELF64_R_TYPE(r.r_info);
    if (symbol >= values.size()) return false;
    std::byte* place = at + r.r_offset;
    const auto addend = static_cast<std::uint64_t>(r.r_addend), p = reinterpret_cast<std::uint64_t>(place),
               table = reinterpret_cast<std::uint64_t>(got);
    std::uint64_t value = 0;
    std::size_t bytes = 8;
    switch (type) {
      case R_X86_64_NONE:
        return true;
      case R_X86_64_64:
        value = values[symbol] + addend;
        break;
      case R_X86_64_PC64:
        value = values[symbol] + addend - p;
        break;
      case R_X86_64_GOTOFF64:
        value = values[symbol] + addend - table;
        break;
      case R_X86_64_GOTPC64:
        value = table + addend - p;
        break;
      case R_X86_64_GOT64:
        value = symbol * 8 + addend;
        break;
      case R_X86_64_PC32:
      case R_X86_64_PLT32:
        value = values[symbol] + addend - p;
        bytes = 4;
        break;
      case R_X86_64_GOTPCREL:
      case R_X86_64_GOTPCRELX:
      case R_X86_64_REX_GOTPCRELX:
        value = table + symbol * 8 + addend - p;
        bytes = 4;
        break;
      default:
        return false;
    }
    if (r.r_offset > section.sh_size || section.sh_size - r.r_offset < bytes) return false;
    const auto wide = static_cast<std::int64_t>(value);
    if (bytes == 4 &&
        (wide < std::numeric_limits<std::int32_t>::min() || wide > std::numeric_limits<std::int32_t>::max()))
      return false;
    std::memcpy(place, &value, bytes);
    return true;
  }

  std::string_view bytes_, names_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<std::optional<std::uint64_t>> places_;  ///< by section: where it is loaded
};

}  // namespace

std::unique_ptr<LoadedCode> link_elf(std::span<const std::string> objects, std::span<const RuntimeFunction> more) {
  using Functions = std::unordered_map<std::string, void*>;
  static const auto* const runtime = [] {
    auto* map = new Functions();
    for (const RuntimeFunction& f : runtime_functions()) map->emplace(f.symbol, f.address);
    return map;
  }();
  Functions with_more;
  if (!more.empty()) {
    with_more = *runtime;
    for (const RuntimeFunction& f : more) with_more.emplace(f.symbol, f.address);
  }
  const Functions& known = more.empty() ? *runtime : with_more;
  std::vector<Object> read;
  std::uint64_t end = 0;
  std::vector<std::uint64_t> tables;
  for (const std::string& bytes : objects) {
    Object& object = read.emplace_back(bytes);
    if (!object.read(end)) return nullptr;
    end = (end + 7) / 8 * 8;
    tables.push_back(end);
    end += object.symbols() * 8;
  }
  auto code = std::make_unique<ElfCode>();
  code->memory = std::make_unique<CodeMemory>(std::max<std::uint64_t>(end, 1));
  if (!code->memory->at()) return nullptr;
  for (std::size_t i = 0; i < read.size(); ++i)
    if (!read[i].load(code->memory->at(), code->memory->at() + tables[i], known, *code)) return nullptr;
  if (!code->memory->make_executable()) return nullptr;
  return code;
}

}  // namespace partita::codegen
