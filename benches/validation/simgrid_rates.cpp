// Prints the rates that SimGrid gives to flows that all run at the same time.
//
// Standard input: a platform (platform.hpp), the number of flow sets, and for each the number of
// its flows and their hosts, from and to. Standard output, for each set: the CPU seconds of
// solving, the CPU seconds of starting the flows, and the rate of every flow in bytes per second.
//
// A rate follows from the bytes that remain of a flow at two moments, after all latencies are over;
// no flow begins or ends in between.
#include "platform.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>

namespace s4u = simgrid::s4u;

static double cpu()
{
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec + 1e-9 * now.tv_nsec;
}

// Bytes of every flow: more than any can send before it is measured, and exact in a double.
constexpr uint64_t BYTES = 1ULL << 50;

static void run_set(const std::vector<s4u::Host*>& host, const std::vector<std::pair<size_t, size_t>>& flows,
                    double highest, double longest, bool last)
{
  const double moment = 0.4 * BYTES / highest;
  std::vector<s4u::CommPtr> comms;
  comms.reserve(flows.size());
  const double begin = cpu();
  for (const auto& [from, to] : flows) {
    auto comm = s4u::Comm::sendto_init(host.at(from), host.at(to));
    comm->set_payload_size(BYTES)->start();
    comms.push_back(comm);
  }
  const double started = cpu();
  // The kernel shares out the bandwidth before time moves on.
  s4u::this_actor::sleep_for(moment + longest);
  const double solved = cpu();
  std::vector<double> left;
  for (const auto& comm : comms)
    left.push_back(comm->get_remaining());
  s4u::this_actor::sleep_for(moment);
  std::printf("%.9f %.9f", solved - started, started - begin);
  for (size_t i = 0; i < comms.size(); i++)
    std::printf(" %.17g", (left[i] - comms[i]->get_remaining()) / moment);
  std::printf("\n");
  if (last) {
    // Skip the cleanup: SimGrid removes flows in a time that grows with the square of their number.
    std::fflush(stdout);
    std::_Exit(0);
  }
  for (const auto& comm : comms)
    comm->cancel();
}

int main(int argc, char** argv)
{
  s4u::Engine engine(&argc, argv);
  // Max-min over links and nothing else: no model of TCP, no latency, no cross-traffic.
  for (const char* option : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                             "network/weight-S:0", "network/bandwidth-factor:1", "network/latency-factor:1",
                             "maxmin/precision:1e-9"})
    engine.set_config(option);
  const auto host = platform::build(std::cin);
  double highest = 0, longest = 0;
  for (const auto* link : engine.get_all_links()) {
    if (link->get_bandwidth() < platform::WIDE)
      highest = std::max(highest, link->get_bandwidth());
    longest = std::max(longest, link->get_latency());
  }
  s4u::Actor::create("flows", host.front(), [&host, highest, longest] {
    for (auto sets = platform::take<size_t>(std::cin); sets > 0; sets--) {
      std::vector<std::pair<size_t, size_t>> flows(platform::take<size_t>(std::cin));
      for (auto& [from, to] : flows) {
        from = platform::take<size_t>(std::cin);
        to   = platform::take<size_t>(std::cin);
      }
      run_set(host, flows, highest, longest, sets == 1);
    }
  });
  engine.run();
  return 0;
}
