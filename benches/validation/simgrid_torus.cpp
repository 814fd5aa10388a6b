// The links that SimGrid's torus uses.
//
// Text, tokens apart by blanks: the number of dimensions, the size of each, the number of jobs; of each job its number of
// hosts, and the hosts. The first dimension changes fastest in the number of a host. Prints a line for each job: links on
// the routes between its hosts, those of each direction apart; then for each pair of hosts the links of its route.
#include "platform.hpp"

#include <iostream>
#include <set>

namespace s4u = simgrid::s4u;

int main(int argc, char** argv)
{
  s4u::Engine engine(&argc, argv);
  std::vector<unsigned long> sizes(platform::take<size_t>(std::cin));
  for (auto& size : sizes)
    size = platform::take<unsigned long>(std::cin);
  std::vector<s4u::Host*> hosts;
  auto place = [&hosts](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    auto* host = zone->create_host("n" + std::to_string(id), "1Gf")->seal();
    if (hosts.size() <= id)
      hosts.resize(id + 1);
    hosts[id] = host;
    return std::make_pair(host->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
  };
  auto* zone = s4u::create_torus_zone("torus", nullptr, sizes, s4u::ClusterCallbacks(place), 1e9, 1e-6,
                                      s4u::Link::SharingPolicy::SPLITDUPLEX);
  zone->seal();
  for (auto jobs = platform::take<size_t>(std::cin); jobs > 0; jobs--) {
    std::vector<s4u::Host*> own(platform::take<size_t>(std::cin));
    for (auto& host : own)
      host = hosts.at(platform::take<size_t>(std::cin));
    std::set<s4u::Link*> all;
    std::string lengths;
    for (auto* from : own)
      for (auto* to : own) {
        std::vector<s4u::Link*> way;
        double latency = 0;
        if (from != to)
          from->route_to(to, way, &latency);
        all.insert(way.begin(), way.end());
        lengths += " " + std::to_string(way.size());
      }
    std::cout << all.size() << lengths << "\n";
  }
}
