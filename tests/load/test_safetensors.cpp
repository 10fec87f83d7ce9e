#include <QTemporaryDir>
#include <QtTest>
#include <cstring>
#include <fstream>

#include "core/load/safetensors.h"

using namespace partita;

namespace {

std::string file_bytes(const std::string& header, std::size_t data_bytes, std::int64_t header_size = -1) {
  std::uint64_t size = header_size < 0 ? header.size() : static_cast<std::uint64_t>(header_size);
  return std::string(reinterpret_cast<const char*>(&size), 8) + header + std::string(data_bytes, '\1');
}

}  // namespace

class TestSafetensors : public QObject {
  Q_OBJECT

  QTemporaryDir dir_;
  std::string path(const char* name) const { return dir_.filePath(name).toStdString(); }

 private Q_SLOTS:
  void round_trip_keeps_layout_dtype_and_aliases();
  void every_dtype_is_kept();
  void an_unknown_dtype_leaves_out_its_tensor();
  void two_numbers_in_a_byte();
  void no_tensors_beside_metadata();
  void damaged_files_are_refused_data();
  void damaged_files_are_refused();

 private:
  Result<TensorFile> read(const std::string& bytes) const {
    std::ofstream(path("given"), std::ios::binary) << bytes;
    return read_safetensors(path("given"));
  }
};

/// The library writes a header that is not JSON then.
void TestSafetensors::no_tensors_beside_metadata() {
  const auto file = read(file_bytes(R"({},"__metadata__":{"requires_grad":"[]"}})", 0));
  QVERIFY2(bool(file), file ? "" : file.error().line().c_str());
  QVERIFY(file->tensors.empty());
  QVERIFY(!read(file_bytes("{},{}", 0)));
}

void TestSafetensors::every_dtype_is_kept() {
  TensorFile file;
  for (int i = 0; i <= int(DType::Bits16); ++i) {
    Tensor t = *Tensor::zeros(static_cast<DType>(i), {3});
    for (std::size_t b = 0; b < t.storage->bytes(); ++b)
      t.storage->data()[b] = static_cast<std::byte>(b * 37 % 2 + i % 2);
    file.tensors.emplace(std::string(torch_name(t.dtype)), t);
  }
  QVERIFY(bool(write_safetensors(path("dtypes"), file)));
  const auto read = read_safetensors(path("dtypes"));
  QVERIFY2(bool(read), read ? "" : read.error().line().c_str());
  QCOMPARE(read->tensors.size(), file.tensors.size());
  for (const auto& [name, t] : read->tensors) {
    QCOMPARE(std::string(torch_name(t.dtype)), name);
    QVERIFY2(std::memcmp(t.data(), file.tensors.at(name).data(), 3 * itemsize(t.dtype)) == 0, name.c_str());
  }
  QVERIFY(read->unread.empty());
}

void TestSafetensors::an_unknown_dtype_leaves_out_its_tensor() {
  const auto file = read(file_bytes(
      R"({"a":{"dtype":"Q4","shape":[3],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})",
      12));
  QVERIFY2(bool(file), file ? "" : file.error().line().c_str());
  QCOMPARE(file->tensors.size(), std::size_t{1});
  QVERIFY(file->find("b"));
  QCOMPARE(file->unread, (std::map<std::string, std::string>{{"a", "Q4"}}));
}

/// safetensors counts the numbers, PyTorch the bytes.
void TestSafetensors::two_numbers_in_a_byte() {
  const auto file = read(file_bytes(R"({"a":{"dtype":"F4","shape":[2,8],"data_offsets":[0,8]}})", 8));
  QVERIFY2(bool(file), file ? "" : file.error().line().c_str());
  QCOMPARE(file->find("a")->dtype, DType::Float4E2M1FNx2);
  QCOMPARE(file->find("a")->sizes, (Sizes{2, 4}));
}

void TestSafetensors::round_trip_keeps_layout_dtype_and_aliases() {
  TensorFile file;
  Tensor whole = *Tensor::zeros(DType::Float32, {12});
  for (int i = 0; i < 12; ++i) whole.as<float>()[i] = static_cast<float>(i);
  Tensor transposed = whole.view_as({3, 4}, {1, 3}, 0);
  transposed.requires_grad = true;
  Tensor z = *Tensor::zeros(DType::Complex128, {2});
  z.as<std::complex<double>>()[1] = {1.5, -2};
  file.tensors = {{"storage.0", whole},
                  {"input.0", transposed},
                  {"input.1", whole.view_as({2}, {1}, 10)},
                  {"z", z},
                  {"empty", *Tensor::zeros(DType::Bool, {0, 3})},
                  {"single", whole.view_as({1, 12, 1}, {7, 1, 5}, 0)},
                  {"i8", *Tensor::scalar(DType::Int8, -7)}};
  file.storages["input.1"] = {"storage.0", 10};
  file.aliases["output.0"] = {"input.1", 1};
  file.metadata["format"] = "pt";
  auto written = write_safetensors(path("a"), file);
  QVERIFY2(bool(written), written ? "" : written.error().line().c_str());
  auto read = read_safetensors(path("a"));
  QVERIFY2(bool(read), read ? "" : read.error().line().c_str());
  QCOMPARE(read->tensors.size(), 7u);
  const Tensor& t = read->tensors["input.0"];
  QVERIFY(t.requires_grad);
  QCOMPARE(t.strides, (Sizes{1, 3}));
  // PyTorch tells them apart where a graph's annotation has them.
  QCOMPARE(read->tensors["single"].strides, (Sizes{7, 1, 5}));
  QCOMPARE(t.item_as_double(1), 3.0);  // row-major (0, 1)
  QVERIFY(read->tensors["input.1"].storage == read->tensors["storage.0"].storage);
  QCOMPARE(read->tensors["input.1"].item_as_double(1), 11.0);
  QCOMPARE(read->tensors["z"].as<std::complex<double>>()[1], std::complex<double>(1.5, -2));
  QCOMPARE(read->tensors["i8"].item_as_double(), -7.0);
  QCOMPARE(read->tensors["empty"].sizes, (Sizes{0, 3}));
  QVERIFY(read->storages == file.storages);
  QVERIFY(read->aliases == file.aliases);
  QVERIFY(read->metadata == file.metadata);
}

void TestSafetensors::damaged_files_are_refused_data() {
  QTest::addColumn<QByteArray>("bytes");
  QTest::addColumn<QString>("says");
  auto row = [](const char* name, std::string bytes, const char* says) {
    QTest::newRow(name) << QByteArray(bytes.data(), static_cast<qsizetype>(bytes.size())) << QString(says);
  };
  const std::string one = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  row("empty", "", "shorter than its 8-byte header");
  row("zeros", std::string(1000, '\0'), "not a JSON object");
  row("header longer than file", file_bytes(one, 8, 1 << 20), "header of 1048576 bytes");
  row("huge header", file_bytes(one, 8, INT64_MAX), "header of 9223372036854775807 bytes");
  row("truncated data", file_bytes(one, 7), "'a' lies outside the file");
  row("offsets swapped", file_bytes(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8), "lies outside");
  row("shape too large", file_bytes(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8), "need 12");
  row("shape overflows", file_bytes(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})", 8),
      "size out of range");
  row("negative shape", file_bytes(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8), "negative size");
  row("dtype beyond the data", file_bytes(R"({"a":{"dtype":"Q4","shape":[2],"data_offsets":[0,9]}})", 8),
      "lies outside");
  row("dtype of bits",
      file_bytes(
          R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]},"__metadata__":{"dtypes":"{\"a\":\"float32\"}"}})",
          8),
      "names no dtype that 'a' can have");
  row("overlap",
      file_bytes(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
          12),
      "overlap");
  row("storage beyond",
      file_bytes(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"storages":"{\"a\":[\"a\",1]}"}})",
          8),
      "reaches beyond");
  row("stride bomb",
      file_bytes(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"strides":"{\"a\":[1000000000000]}"}})",
          8),
      "span 1000000000001 elements");
  row("strides of several tensors",
      file_bytes(
          R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"__metadata__":{"strides":"{\"a\":[12000000],\"b\":[12000000]}"}})",
          16),
      "strides of 'b' span 12000001 elements");
  row("metadata no JSON", file_bytes(R"({"__metadata__":{"strides":"{"}})", 0), "'strides' is not JSON");
}

void TestSafetensors::damaged_files_are_refused() {
  QFETCH(QByteArray, bytes);
  QFETCH(QString, says);
  std::ofstream(path("bad"), std::ios::binary) << std::string(bytes.data(), static_cast<std::size_t>(bytes.size()));
  auto read = read_safetensors(path("bad"));
  QVERIFY(!read);
  QVERIFY2(QString::fromStdString(read.error().line()).contains(says), read.error().line().c_str());
}

QTEST_GUILESS_MAIN(TestSafetensors)
#include "test_safetensors.moc"
