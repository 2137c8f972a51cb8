// Readers of measurements that others already have, one file each. A reader knows its files by their header and turns
// rows into fit points; rows that no family of ours describes are counted, not guessed.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "calib/fit_form.hpp"
#include "sim/base/csv.hpp"

namespace rackcast::calib {

struct Imported {
  std::vector<FitPoint> points;
  std::map<std::string, int> left_out;  // reason -> rows
  std::map<std::string, std::pair<std::string, int>> models;  // that rows name -> file and line of the first one
};

struct CsvImporter {
  std::string_view name;
  std::string_view columns;             // comma list that a file of this kind has
  void (*read)(const CsvTable& table, Imported& out);
};
std::span<const CsvImporter> csv_importers();

// CSV by its header, .jsonl(.gz) as measurements of rackcast-calib. UserError for anything else.
Imported import_points(const std::string& path);

std::string gpu_name(std::string_view as_written);  // "H200", "h200_sxm", "NVIDIA H200" -> h200; empty: unknown

// Reason of step log rows in which the GPU hides the host.
constexpr std::string_view hidden_host_time = "no host time left: the engine overlaps it";

void import_kernel_points(const CsvTable& table, Imported& out);
void import_module_points(const CsvTable& table, Imported& out);
void import_engine_log(const CsvTable& table, Imported& out);
void import_exchange_table(const CsvTable& table, Imported& out);
void import_bench_forward(const CsvTable& table, Imported& out);
void import_measurements(const std::string& path, Imported& out);
void import_nccl_tests(const std::string& path, Imported& out);
bool is_nccl_tests(const std::string& path);

// Engines pick the fastest kernel for a shape: of points that are equal but for the kernel, the fastest stays.
void keep_fastest(std::vector<FitPoint>& points);

// "b=1,new=512,ctx=8192;scores=v1" -> numbers by name, and bare "7168/3072/384/top6" parts by position.
class ShapeText {
 public:
  explicit ShapeText(std::string_view text);
  bool has(const std::string& key) const { return numbers_.count(key) > 0; }
  double number(const std::string& key) const;  // UserError if absent
  double number(const std::string& key, double otherwise) const { return has(key) ? numbers_.at(key) : otherwise; }
  const std::string& word(const std::string& key) const;  // empty if absent

 private:
  std::map<std::string, double> numbers_;
  std::map<std::string, std::string> words_;
  std::string text_;
};

}  // namespace rackcast::calib
