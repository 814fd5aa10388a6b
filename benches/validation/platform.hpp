// A SimGrid platform: one full zone with explicit routes, or SimGrid's own dragonfly or torus; links without latency.
//
// "dragonfly", then groups and cables between two of them, chassis of a group and cables between two of them, routers of
// a chassis and cables between two of them, nodes of a router, and the bytes per second of a cable. "torus", then the
// number of dimensions, the size of each, and the bytes per second of a cable; the first dimension changes fastest in the
// number of a host. Otherwise text, tokens apart by blanks: HOSTS LINKS ROUTES, the bytes per second of every link, then for
// every route from, to, its latency in seconds, the number of its links and the links. Routes are
// one way. SimGrid's flows share a link by the inverse of their latencies (the round-trip time
// unfairness of TCP), which is how flows are given weights: latencies of 0 are weights alike.
#pragma once

#include <simgrid/s4u.hpp>

#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

namespace platform {

namespace s4u = simgrid::s4u;

// Bytes per second that no flow reaches.
constexpr double WIDE = 1e15;

template <typename T> T take(std::istream& in)
{
  T value;
  if (!(in >> value))
    throw std::runtime_error("the input ends early");
  return value;
}

// A link of a single route that adds its latency and limits no bandwidth.
inline const s4u::Link* delay(s4u::NetZone* zone, const std::string& name, double latency)
{
  auto* link = zone->create_link(name, WIDE);
  return link->set_latency(latency)->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)->seal();
}

inline std::vector<s4u::Host*> dragonfly(std::istream& in)
{
  unsigned int number[7];
  for (auto& each : number)
    each = take<unsigned int>(in);
  const auto bandwidth = take<double>(in);
  std::vector<s4u::Host*> host;
  const s4u::ClusterCallbacks callbacks([&host](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    host.push_back(zone->create_host("n" + std::to_string(id), "100Gf")->seal());
    return std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*>(
        host.back()->get_netpoint(), nullptr);
  });
  const s4u::DragonflyParams shape({number[0], number[1]}, {number[2], number[3]}, {number[4], number[5]}, number[6]);
  s4u::create_dragonfly_zone("machine", nullptr, shape, callbacks, bandwidth, 0.0,
                             s4u::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  return host;
}

inline std::vector<s4u::Host*> torus(std::istream& in)
{
  std::vector<unsigned long> sizes(take<size_t>(in));
  for (auto& size : sizes)
    size = take<unsigned long>(in);
  const auto bandwidth = take<double>(in);
  std::vector<s4u::Host*> host;
  const s4u::ClusterCallbacks callbacks([&host](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long id) {
    if (host.size() <= id)
      host.resize(id + 1);
    host[id] = zone->create_host("n" + std::to_string(id), "100Gf")->seal();
    return std::pair<simgrid::kernel::routing::NetPoint*, simgrid::kernel::routing::NetPoint*>(
        host[id]->get_netpoint(), nullptr);
  });
  s4u::create_torus_zone("machine", nullptr, sizes, callbacks, bandwidth, 0.0, s4u::Link::SharingPolicy::SPLITDUPLEX)
      ->seal();
  return host;
}

inline std::vector<s4u::Host*> build(std::istream& in)
{
  in >> std::ws;
  if (const auto first = in.peek(); first == 'd' || first == 't')
    return take<std::string>(in) == "torus" ? torus(in) : dragonfly(in);
  const auto hosts  = take<size_t>(in);
  const auto links  = take<size_t>(in);
  const auto routes = take<size_t>(in);
  auto* zone        = s4u::create_full_zone("machine");
  std::vector<s4u::Host*> host(hosts);
  for (size_t i = 0; i < hosts; i++)
    host[i] = zone->create_host("n" + std::to_string(i), "100Gf")->seal();
  std::vector<const s4u::Link*> link(links);
  for (size_t i = 0; i < links; i++)
    link[i] = zone->create_link("c" + std::to_string(i), take<double>(in))->set_latency(0.0)->seal();
  for (size_t i = 0; i < routes; i++) {
    const auto* from = host.at(take<size_t>(in))->get_netpoint();
    const auto* to   = host.at(take<size_t>(in))->get_netpoint();
    std::vector<s4u::LinkInRoute> way;
    const auto latency = take<double>(in);
    if (latency > 0)
      way.emplace_back(delay(zone, "d" + std::to_string(i), latency));
    for (auto left = take<size_t>(in); left > 0; left--)
      way.emplace_back(link.at(take<size_t>(in)));
    zone->add_route(const_cast<simgrid::kernel::routing::NetPoint*>(from),
                    const_cast<simgrid::kernel::routing::NetPoint*>(to), nullptr, nullptr, way, false);
  }
  zone->seal();
  return host;
}

} // namespace platform
