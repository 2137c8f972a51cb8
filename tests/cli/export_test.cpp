#define BOOST_TEST_MODULE cli_export
#include <yaml-cpp/yaml.h>

#include <boost/test/unit_test.hpp>

#include "tests/support/program.hpp"

using support::Outcome;
using support::rackcast;
using support::shell;

namespace {

YAML::Node exported(const std::string& arguments) {
  const Outcome outcome = rackcast("export " + arguments);
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  return YAML::Load(outcome.out);
}

// The word after --name in a list of arguments.
std::string argument(const YAML::Node& arguments, const std::string& name) {
  for (std::size_t i = 0; i + 1 < arguments.size(); ++i)
    if (arguments[i].as<std::string>() == "--" + name) return arguments[i + 1].as<std::string>();
  return "absent";
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_slurm_recipe_holds_the_plans_numbers) {
  const YAML::Node recipe = exported("scenarios/standard.yaml --format srt-slurm");
  const YAML::Node resources = recipe["resources"];
  BOOST_TEST(resources["gpu_type"].as<std::string>() == "gb300");
  BOOST_TEST(resources["gpus_per_node"].as<int>() == 4);
  BOOST_TEST(resources["prefill_workers"].as<int>() == 8);
  BOOST_TEST(resources["gpus_per_prefill"].as<int>() == 4);
  BOOST_TEST(resources["prefill_nodes"].as<int>() == 8);
  BOOST_TEST(resources["decode_workers"].as<int>() == 1);
  BOOST_TEST(resources["gpus_per_decode"].as<int>() == 32);
  BOOST_TEST(resources["decode_nodes"].as<int>() == 8);
  const YAML::Node prefill = recipe["backend"]["vllm_config"]["prefill"], decode = recipe["backend"]["vllm_config"]["decode"];
  BOOST_TEST(prefill["data-parallel-size"].as<int>() == 4);
  BOOST_TEST(prefill["max-num-batched-tokens"].as<int>() == 16384);
  BOOST_TEST(decode["data-parallel-size"].as<int>() == 32);
  BOOST_TEST(decode["max-num-seqs"].as<int>() == 128);
  BOOST_TEST(decode["max-num-batched-tokens"].as<int>() == 768);
  BOOST_TEST(decode["enable-expert-parallel"].as<bool>());
  const YAML::Node draft = YAML::Load(decode["speculative-config"].as<std::string>());
  BOOST_TEST(draft["method"].as<std::string>() == "dspark");
  BOOST_TEST(draft["num_speculative_tokens"].as<int>() == 5);
  const YAML::Node connector = YAML::Load(decode["kv-transfer-config"].as<std::string>());
  BOOST_TEST(connector["kv_connector"].as<std::string>() == "NixlPushConnector");
  const double share = decode["gpu-memory-utilization"].as<double>();
  BOOST_TEST(share > 0.5);
  BOOST_TEST(share < 1);
}

BOOST_AUTO_TEST_CASE(a_dynamo_graph_holds_the_plans_numbers) {
  const YAML::Node graph = exported("scenarios/standard.yaml --format dynamo");
  BOOST_TEST(graph["kind"].as<std::string>() == "DynamoGraphDeployment");
  const YAML::Node services = graph["spec"]["services"];
  BOOST_TEST(services["prefill"]["replicas"].as<int>() == 8);
  BOOST_TEST(services["decode"]["replicas"].as<int>() == 1);
  BOOST_TEST(services["decode"]["multinode"]["nodeCount"].as<int>() == 8);
  BOOST_TEST(services["decode"]["resources"]["limits"]["gpu"].as<int>() == 4);
  const YAML::Node arguments = services["decode"]["extraPodSpec"]["mainContainer"]["args"];
  BOOST_TEST(argument(arguments, "data-parallel-size") == "32");
  BOOST_TEST(argument(arguments, "model") == "deepseek-ai/DeepSeek-V4.1-Flash");
  BOOST_TEST(argument(arguments, "disaggregation-mode") == "decode");
  const YAML::Node prefill = services["prefill"]["extraPodSpec"]["mainContainer"]["args"];
  const YAML::Node connectors = YAML::Load(argument(prefill, "kv-transfer-config"))["kv_connector_extra_config"]["connectors"];
  BOOST_TEST(connectors[1]["kv_connector_extra_config"]["cpu_bytes_to_use"].as<std::int64_t>() == 640LL * 1024 * 1024 * 1024 / 4);
}

BOOST_AUTO_TEST_CASE(a_vllm_script_is_a_script_and_names_its_sources) {
  const Outcome script = rackcast("export scenarios/standard.yaml --format vllm");
  BOOST_TEST(script.out.find("--data-parallel-size 32  # deployment.decode.dep\n") != std::string::npos);
  BOOST_TEST(script.out.find("--data-parallel-size-local 4") != std::string::npos);
  BOOST_TEST(script.out.find("docs.vllm.ai") != std::string::npos);
  BOOST_TEST(shell("\"$RACKCAST\" export scenarios/standard.yaml --format vllm | bash -n").code == 0);
  // What the script would run on the decode engine's third node, with vllm and hostname stood in for.
  const support::TemporaryFolder folder;
  folder.file("vllm", "#!/bin/sh\necho \"$CUDA_VISIBLE_DEVICES: $*\"\n");
  const Outcome run = shell("chmod +x " + folder.path + "/vllm; \"$RACKCAST\" export scenarios/standard.yaml --format vllm > " + folder.path +
                            "/serve.sh; PATH=" + folder.path + ":$PATH bash " + folder.path + "/serve.sh decode 2 10.0.0.1");
  BOOST_TEST(run.code == 0, run.err);
  BOOST_TEST(run.out.find("0,1,2,3: serve deepseek-ai/DeepSeek-V4.1-Flash --port 8000 ") == 0U, run.out);
  BOOST_TEST(run.out.find("--data-parallel-start-rank 8 ") != std::string::npos);
  BOOST_TEST(shell("\"$RACKCAST\" export scenarios/standard.yaml --format vllm | bash -s nonsense 0 x").code == 2);
}

BOOST_AUTO_TEST_CASE(every_format_names_the_engine_version_and_where_each_flag_comes_from) {
  for (const char* format : {"vllm", "dynamo", "srt-slurm"}) {
    const std::string text = rackcast("export scenarios/standard.yaml --format " + std::string(format)).out;
    BOOST_TEST(text.find("vLLM 0.27") != std::string::npos, format);
    BOOST_TEST(text.find("docs.vllm.ai") != std::string::npos, format);
    for (const char* key : {"# deployment.decode.dep\n", "# deployment.prefill.max_batched_tokens\n", "# deployment.decode.max_requests_per_rank\n"})
      BOOST_TEST(text.find(key) != std::string::npos, format << " " << key);
  }
}

BOOST_AUTO_TEST_CASE(the_best_of_a_plan_exports_with_its_numbers_by_its_id) {
  const support::TemporaryFolder folder;
  const std::string plan = folder.file("p.yaml",
                                       "name: p\nbase: standard\nconstraints: {p90_tok_s_user: 200}\nlanes: {from: 8, to: 128, factor: 2}\nshort_run: 2 s\n"
                                       "long_run: 4 s\nbands: 0\nset: [workload.kind=closed_loop, workload.input=1K, workload.output=64, network=fluid]\n"
                                       "axes:\n  - {key: deployment.prefill.engines, values: [2, 4]}\n  - {key: deployment.decode.dep, values: [8, 16]}\n");
  const Outcome outcome = rackcast("plan " + plan + " --out " + folder.path + "/p.sqlite");
  BOOST_REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  const auto after = [&](const std::string& word) {
    const std::size_t at = outcome.out.find(word) + word.size();
    return outcome.out.substr(at, outcome.out.find_first_of(" \n", at) - at);
  };
  const YAML::Node recipe = exported(folder.path + "/p.sqlite:" + after(" id ").substr(0, 12) + " --format srt-slurm");
  BOOST_TEST(recipe["resources"]["prefill_workers"].as<std::string>() == after("prefill.engines="));
  BOOST_TEST(recipe["resources"]["gpus_per_decode"].as<std::string>() == after("decode.dep="));
  BOOST_TEST(rackcast("export " + folder.path + "/p.sqlite:ffffffffffff --format vllm").code == 2);
}

BOOST_AUTO_TEST_CASE(aggregated_tensor_parallel_engines_export_too) {
  const YAML::Node recipe = exported("scenarios/low-latency.yaml --format srt-slurm");
  BOOST_TEST(recipe["resources"]["gpus_per_agg"].as<int>() == 4);
  BOOST_TEST(recipe["backend"]["vllm_config"]["aggregated"]["tensor-parallel-size"].as<int>() == 4);
  BOOST_TEST(!recipe["backend"]["vllm_config"]["aggregated"]["data-parallel-size"].IsDefined());
}

BOOST_AUTO_TEST_CASE(every_shipped_model_exports_with_its_precision) {
  const auto precision = [](const std::string& model) {
    return exported("scenarios/gallery/expert-split-base.yaml --format srt-slurm --set rack.gpus=16 --set deployment.aggregated.tp=8 --set model=" + model)["model"]["precision"].as<std::string>();
  };
  BOOST_TEST(precision("deepseek-r1") == "fp8");
  BOOST_TEST(precision("deepseek-r1-nvfp4") == "fp4");
  BOOST_TEST(precision("deepseek-v4.1-flash") == "fp4");
  BOOST_TEST(precision("kimi-k2.5") == "fp4");
  BOOST_TEST(precision("kimi-k2.5-int4") == "int4");
}

BOOST_AUTO_TEST_CASE(whole_and_cut_experts_export_as_the_engine_s_flag_and_what_cannot_be_placed_is_said) {
  const std::string one = "scenarios/gallery/expert-split-base.yaml --format vllm --set deployment.aggregated.";
  BOOST_TEST(rackcast("export " + one + "experts=expert_parallel").out.find("--enable-expert-parallel") != std::string::npos);
  BOOST_TEST(rackcast("export " + one + "experts=tensor_parallel").out.find("--enable-expert-parallel") == std::string::npos);
  const std::string cut = rackcast("export " + one + "experts=tensor_parallel --set deployment.eplb.policy=periodic_async").out;
  BOOST_TEST(cut.find("eplb.policy: aggregated has slices of every expert") != std::string::npos);
  const Outcome run = rackcast("run scenarios/gallery/expert-split-base.yaml --set deployment.eplb.policy=periodic_async --set workload.requests=8");
  BOOST_TEST((run.out + run.err).find("deployment.eplb has nothing to place") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(pull_is_the_plain_connector_and_layerwise_says_what_is_lost) {
  const Outcome pull = rackcast("export scenarios/handover.yaml --format vllm");
  BOOST_TEST(pull.out.find("\"kv_connector\":\"NixlConnector\"") != std::string::npos);
  BOOST_TEST(pull.out.find("--no-async-scheduling") != std::string::npos);
  const Outcome layerwise = rackcast("export scenarios/standard.yaml --format vllm --set deployment.kv_transfer.mode=push_layerwise");
  BOOST_TEST(layerwise.out.find("# Note: kv_transfer.mode push_layerwise: written as push") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(no_name_breaks_out_of_its_place) {
  const std::string bad = R"(--set 'name="x\ntouch /tmp/owned"' --model-path "a'; touch /tmp/owned; '")";
  const Outcome script = rackcast("export scenarios/standard.yaml --format vllm " + bad);
  BOOST_TEST(script.code == 0);
  BOOST_TEST(script.out.find("\ntouch") == std::string::npos);
  BOOST_TEST(script.out.find(R"(exec vllm serve 'a'\''; touch /tmp/owned; '\''' --port)") != std::string::npos);
  const YAML::Node recipe = exported("scenarios/standard.yaml --format srt-slurm " + bad);
  BOOST_TEST(recipe["model"]["path"].as<std::string>() == "a'; touch /tmp/owned; '");
  BOOST_TEST(exported("scenarios/standard.yaml --format dynamo " + bad)["metadata"]["name"].as<std::string>() == "x-touch--tmp-owned");
}

BOOST_AUTO_TEST_CASE(bad_requests_are_refused) {
  BOOST_TEST(rackcast("export scenarios/standard.yaml --format helm").err == "rackcast: --format 'helm' is not known: vllm, dynamo or srt-slurm\n");
  BOOST_TEST(rackcast("export scenarios/standard.yaml").code == 2);
  BOOST_TEST(rackcast("export /nowhere.sqlite:1 --format vllm").code == 2);
  BOOST_TEST(rackcast("export /tmp --format vllm").code == 2);
  BOOST_TEST(rackcast("export scenarios/standard.yaml --format vllm --out /dev/null").code == 2);
}
