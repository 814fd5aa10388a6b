// A platform with explicit routes and the traffic of others, for smpirun: the file that
// TOPOLANE_PLATFORM names, tokens apart by blanks.
//
// HOSTS SPEED LINKS ROUTES SENDERS; bytes per second and seconds of every link; for every route from,
// to, the number of its links and the links, one way each; for every sender a seed, its host, the
// share of its time it would send without contention, its mean bytes a transfer and bytes per
// second alone, the number of its receivers and their hosts.
//
// A sender draws a receiver and a size, waits until all has arrived, and pauses; sizes and pauses are
// exponential. Senders are daemons: the simulation ends with the MPI program.
#include <simgrid/s4u.hpp>

#include <cstdlib>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

namespace {

// Of a host: more than it has processes, so that each has one of its own.
constexpr int CORES = 64;

template <typename T> T take(std::istream& in)
{
  T value;
  if (!(in >> value))
    throw std::runtime_error("TOPOLANE_PLATFORM: the file ends early");
  return value;
}

struct Sender {
  unsigned long seed;
  s4u::Host* host;
  double duty, bytes, rate;
  std::vector<s4u::Host*> receivers;

  void operator()() const
  {
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> size(1 / bytes), pause(duty / (1 - duty) * rate / bytes);
    std::uniform_int_distribution<size_t> one(0, receivers.size() - 1);
    // As if it had been sending before: the rest of an exponential pause is one.
    bool sends = std::uniform_real_distribution<double>(0, 1)(random) < duty;
    for (;; sends = true) {
      if (sends)
        s4u::Comm::sendto(host, receivers[one(random)], static_cast<uint64_t>(size(random)) + 1);
      s4u::this_actor::sleep_for(pause(random));
    }
  }
};

Sender read_sender(std::istream& in, const std::vector<s4u::Host*>& host)
{
  Sender sender;
  sender.seed  = take<unsigned long>(in);
  sender.host  = host.at(take<size_t>(in));
  sender.duty  = take<double>(in);
  sender.bytes = take<double>(in);
  sender.rate  = take<double>(in);
  for (auto left = take<size_t>(in); left > 0; left--)
    sender.receivers.push_back(host.at(take<size_t>(in)));
  return sender;
}

void build(std::istream& in)
{
  const auto hosts   = take<size_t>(in);
  const auto speed   = take<double>(in);
  const auto links   = take<size_t>(in);
  const auto routes  = take<size_t>(in);
  const auto senders = take<size_t>(in);
  auto* zone         = s4u::create_full_zone("machine");
  std::vector<s4u::Host*> host;
  for (size_t i = 0; i < hosts; i++)
    host.push_back(zone->create_host("n" + std::to_string(i), speed)->set_core_count(CORES)->seal());
  std::vector<const s4u::Link*> link;
  for (size_t i = 0; i < links; i++) {
    const auto bandwidth = take<double>(in);
    link.push_back(zone->create_link("c" + std::to_string(i), bandwidth)->set_latency(take<double>(in))->seal());
  }
  for (size_t i = 0; i < routes; i++) {
    auto* from = host.at(take<size_t>(in))->get_netpoint();
    auto* to   = host.at(take<size_t>(in))->get_netpoint();
    std::vector<s4u::LinkInRoute> way;
    for (auto left = take<size_t>(in); left > 0; left--)
      way.emplace_back(link.at(take<size_t>(in)));
    zone->add_route(from, to, nullptr, nullptr, way, false);
  }
  zone->seal();
  for (size_t i = 0; i < senders; i++) {
    const Sender sender = read_sender(in, host);
    s4u::Actor::create("others", sender.host, sender)->daemonize();
  }
}

} // namespace

extern "C" void load_platform(const s4u::Engine&);

void load_platform(const s4u::Engine&)
{
  const char* name = std::getenv("TOPOLANE_PLATFORM");
  if (name == nullptr)
    throw std::runtime_error("TOPOLANE_PLATFORM names no file");
  std::ifstream file(name);
  build(file);
}
