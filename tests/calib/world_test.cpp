#define BOOST_TEST_MODULE world
#include <boost/test/unit_test.hpp>
#include <map>

#include "calib/world.hpp"
#include "sim/base/error.hpp"

using namespace rackcast;
using namespace rackcast::calib;

namespace {

Environment environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

std::string message_of(std::map<std::string, std::string> variables) {
  try {
    world_place(environment(std::move(variables)));
  } catch (const UserError& error) {
    return error.problems().at(0).rule;
  }
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(without_a_launcher_a_process_is_alone) {
  const WorldPlace place = world_place(environment({}));
  BOOST_TEST(place.ranks == 1);
  BOOST_TEST(place.rank == 0);
  BOOST_TEST(place.launcher == "none");
}

BOOST_AUTO_TEST_CASE(mpirun_slurm_pmi_and_torchrun_are_read) {
  const WorldPlace mpi = world_place(environment({{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}));
  BOOST_TEST(mpi.rank == 5);
  BOOST_TEST(mpi.ranks == 8);
  BOOST_TEST(mpi.local_rank == 1);
  BOOST_TEST(mpi.local_ranks == 4);
  BOOST_TEST(mpi.launcher == "mpirun");
  const WorldPlace slurm = world_place(environment({{"SLURM_PROCID", "71"}, {"SLURM_STEP_NUM_TASKS", "72"}, {"SLURM_LOCALID", "3"}, {"SLURM_STEP_TASKS_PER_NODE", "4(x18)"}, {"SLURM_JOB_ID", "99"}, {"SLURM_STEP_ID", "0"}}));
  BOOST_TEST(slurm.rank == 71);
  BOOST_TEST(slurm.ranks == 72);
  BOOST_TEST(slurm.local_rank == 3);
  BOOST_TEST(slurm.local_ranks == 4);
  BOOST_TEST(slurm.job == "slurm-99.0");
  BOOST_TEST(world_place(environment({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}})).launcher == "pmi");
  BOOST_TEST(world_place(environment({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"LOCAL_RANK", "1"}})).launcher == "torchrun");
}

BOOST_AUTO_TEST_CASE(a_batch_script_is_not_taken_for_rank_0_of_its_job) {
  BOOST_TEST(world_place(environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "72"}, {"SLURM_JOB_ID", "99"}})).ranks == 1);
}

BOOST_AUTO_TEST_CASE(half_an_environment_is_refused_with_the_variable_that_is_missing_or_wrong) {
  BOOST_TEST(message_of({{"OMPI_COMM_WORLD_SIZE", "8"}}) == "OMPI_COMM_WORLD_SIZE=8 is set, but OMPI_COMM_WORLD_RANK is not");
  BOOST_TEST(message_of({{"RANK", "2"}, {"WORLD_SIZE", "2"}}) == "RANK=2 with WORLD_SIZE=2: must be 0 to 1");
  BOOST_TEST(message_of({{"RANK", "one"}, {"WORLD_SIZE", "2"}}) == "RANK=one: must be a whole number");
}

BOOST_AUTO_TEST_CASE(the_ladder_doubles_and_ends_with_all_ranks) {
  BOOST_TEST(rank_ladder(1) == (std::vector<int>{1}), boost::test_tools::per_element());
  BOOST_TEST(rank_ladder(8) == (std::vector<int>{1, 2, 4, 8}), boost::test_tools::per_element());
  BOOST_TEST(rank_ladder(6) == (std::vector<int>{1, 2, 4, 6}), boost::test_tools::per_element());
  BOOST_TEST(rank_ladder(72) == (std::vector<int>{1, 2, 4, 8, 16, 32, 64, 72}), boost::test_tools::per_element());
}
