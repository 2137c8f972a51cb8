// A model: shapes, data types, layers by kind, KV layout, draft. Files in scenarios/models/.
// Everything that costs time or memory follows from these shapes (sim/cost/operators, sim/cost/memory); no code knows a
// model by name. Layers of one kind are one LayerGroup; their order in the stack does not matter to cost.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/schema.hpp"
#include "sim/spec/deployment.hpp"

namespace rackcast {

// latent: one shared key = value row per token, read by every head (V4: window + selected compressed rows, grouped
//         low-rank output). mla: latent of kv_rank + rope, absorbed in decode and expanded in prefill (V3, R1, Kimi).
// grouped: kv_heads heads of keys and values (GQA, MHA).
enum class AttentionForm { latent, mla, grouped };
enum class Attends { window, selected, all };      // window rows; window + top-k of the rows; every row
enum class IndexRole { none, full, candidates };   // scores nothing; every compressed row; only the candidate rows
enum class FfnKind { moe, dense };
enum class PrefillRows { all, tail };              // a prefill runs this layer on every token, or on a chunk's last ones
// fp8: 1 B; fp4: 0.5 B + a scale byte per 32, times FP8 activations; nvfp4: 0.5 B + one per 16, times FP4 activations
// int4: 0.5 B + two scale bytes per 32, times BF16 activations
enum class WeightType { bf16, fp8, fp4, nvfp4, int4 };
enum class DraftKind { dspark, mtp };

struct AttentionSpec {
  AttentionForm form = AttentionForm::grouped;
  int heads = 0;
  int kv_heads = 1;
  int head_dim = 0;        // of queries and keys without rope for mla; whole for the others
  int value_dim = 0;       // mla: 128
  int rope_dim = 0;        // mla: added to the key; latent: part of head_dim
  int q_rank = 0;          // 0: queries come straight from the hidden state
  int kv_rank = 0;         // mla: width of the stored latent
  int output_groups = 0;   // latent: low-rank output in groups; 0: one dense output projection
  int output_rank = 0;
  bool output_nvfp4 = false;  // the output projection is NVFP4, whatever the other projections are
  int window = 0;          // 0: none
};
void fields(Visitor& v, AttentionSpec& a);

struct IndexerSpec {
  int heads = 0;
  int head_dim = 0;
  int selected = 0;          // rows that a query attends
  int candidates = 0;        // rows that IndexRole::candidates scores
  WeightType query_weights = WeightType::fp8;
};
void fields(Visitor& v, IndexerSpec& i);

struct LayerGroup {
  std::string name;
  int count = 0;
  Attends attends = Attends::all;
  int compress_ratio = 1;        // context tokens per stored row that this layer reads
  bool writes_kv = true;         // false: reads the rows of another layer
  IndexRole index = IndexRole::none;
  bool index_keys = false;       // stores index keys (with its rows)
  int compressor_width = 0;      // columns of the compressor's projection (gate included); 0: none
  int index_key_input = 0;       // the index key's projection: input and output width; 0: none
  int index_key_width = 0;
  Bytes compressor_state{};      // kept per request and layer
  FfnKind ffn = FfnKind::moe;
  PrefillRows prefill_rows = PrefillRows::all;
  int engram_layers = 0;         // how many of these layers have an Engram lookup
};
void fields(Visitor& v, LayerGroup& g);

struct ExpertsSpec {
  int count = 0;               // routed; 0: no MoE
  int shared = 0;
  int top_k = 0;
  int intermediate = 0;        // of one expert
  int dense_intermediate = 0;  // of FfnKind::dense layers
  WeightType weights = WeightType::fp8;
  bool fused = false;          // engines run dispatch, experts and combine as one kernel where the GPU has one
};
void fields(Visitor& v, ExpertsSpec& e);

// Bytes of one stored row. The first format of a model is KvFormat::nvfp4 of the deployment, the second fp8_layout.
struct KvFormatSpec {
  std::string name;
  Bytes row{};         // one row of a layer that writes KV
  Bytes window_row{};  // one row of the sliding window
  Bytes index_key{};
};
void fields(Visitor& v, KvFormatSpec& k);

struct EngramSpec {
  int rows_per_token = 0;      // gathered per token and Engram layer
  Bytes row{};
  Bytes tables{};              // all tables together
  int projection_input = 0;    // the key and value projection behind the lookup
  int projection_output = 0;
};
void fields(Visitor& v, EngramSpec& e);

struct DraftSpec {
  DraftKind kind = DraftKind::mtp;
  int max_tokens = 0;          // largest number of drafted tokens per step
  int stages = 1;              // layers of the draft
  int inputs = 1;              // hidden states joined by its input projection
  int experts = 0;             // routed experts of a draft layer
  int top_k = 0;
  int markov_rank = 0;         // dspark: width of the sequential bias; 0: none
};
void fields(Visitor& v, DraftSpec& d);

struct ModelSpec {
  std::string name;
  std::string source;
  int hidden = 0;
  int vocabulary = 0;
  Tokens max_context{};
  int residual_streams = 1;    // mHC: streams of the residual; 1: none
  Tokens tail{128};            // PrefillRows::tail: rows of a chunk that those layers see
  WeightType dense_weights = WeightType::fp8;  // attention projections, shared expert, Engram, draft input
  WeightType head_weights = WeightType::bf16;  // embedding and head
  AttentionSpec attention;
  IndexerSpec indexer;
  ExpertsSpec experts;
  std::vector<LayerGroup> layers;
  std::vector<KvFormatSpec> kv_formats;
  std::optional<EngramSpec> engram;
  std::optional<DraftSpec> draft;
  Bytes activation_per_token{};  // peak working set per token of a batch; 0: derived in memory

  int layer_count() const;
  const KvFormatSpec& kv_format(KvFormat format) const;  // the only one if the model has one
  double kv_bytes_per_token(KvFormat format) const;      // context-proportional, whole model, unsharded
  // Window rows and compressor state of one request; with_draft adds the draft layers' windows.
  double kv_fixed_bytes(KvFormat format, bool with_draft) const;
};
void fields(Visitor& v, ModelSpec& m);

}  // namespace rackcast
