// The rates that endless TCP flows reach packet by packet, under ns-3.
//
// Arguments: shared or fair, the seconds before measuring and the seconds measured. Standard input:
// SWITCHES-AND-HOSTS HOSTS CABLES ROUTES FLOWS (the hosts are the first numbers), the two ends and
// the bytes per second of every cable, then routes (at, host to reach, cable to take), then flows
// (from, to). Standard output: the bytes per second of payload of every flow.
//
// A host has one cable. shared: one queue at every port, packets dropped early and at random (RED);
// where only the last are dropped, flows of one round-trip time fall into step and one of two may
// starve. fair: queues by flow (FQ-CoDel), which is what max-min fairness takes for granted.
#include <ns3/applications-module.h>
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

using namespace ns3;

static unsigned take()
{
  unsigned value;
  if (!(std::cin >> value))
    throw std::runtime_error("the input ends early");
  return value;
}

struct Cable {
  unsigned end[2];
  uint32_t interface[2];
};

struct Net {
  NodeContainer nodes;
  std::vector<Cable> cables;
  std::vector<Ipv4Address> address;
};

static Net build(unsigned nodes, unsigned hosts, unsigned cables, bool fair)
{
  Net net;
  net.nodes.Create(nodes);
  net.address.resize(hosts);
  Ipv4StaticRoutingHelper by_table;
  InternetStackHelper stack;
  stack.SetRoutingHelper(by_table);
  stack.Install(net.nodes);
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
  TrafficControlHelper queues;
  queues.SetRootQueueDisc(fair ? "ns3::FqCoDelQueueDisc" : "ns3::RedQueueDisc");
  for (unsigned i = 0; i < cables; i++) {
    Cable cable = {{take(), take()}, {0, 0}};
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(8ULL * take())));
    link.SetChannelAttribute("Delay", TimeValue(MicroSeconds(5)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("2p"));
    auto devices = link.Install(net.nodes.Get(cable.end[0]), net.nodes.Get(cable.end[1]));
    queues.Install(devices);
    auto interfaces = addresses.Assign(devices);
    addresses.NewNetwork();
    for (unsigned side = 0; side < 2; side++) {
      cable.interface[side] = interfaces.Get(side).second;
      if (cable.end[side] < hosts)
        net.address[cable.end[side]] = interfaces.GetAddress(side);
    }
    net.cables.push_back(cable);
  }
  return net;
}

static void route(const Net& net, unsigned routes)
{
  Ipv4StaticRoutingHelper helper;
  for (unsigned i = 0; i < routes; i++) {
    const unsigned at = take(), to = take();
    const Cable& cable = net.cables.at(take());
    const unsigned side = cable.end[0] == at ? 0 : 1;
    auto table = helper.GetStaticRouting(net.nodes.Get(at)->GetObject<Ipv4>());
    table->AddHostRouteTo(net.address.at(to), cable.interface[side]);
  }
}

static std::vector<Ptr<PacketSink>> send(const Net& net, unsigned flows, double end)
{
  std::vector<Ptr<PacketSink>> sinks;
  Ptr<UniformRandomVariable> jitter = CreateObject<UniformRandomVariable>();
  for (unsigned flow = 0; flow < flows; flow++) {
    const unsigned from = take(), to = take();
    const uint16_t port = 1000 + flow;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    auto receiving = sink.Install(net.nodes.Get(to));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(net.address.at(to), port));
    auto sending = bulk.Install(net.nodes.Get(from));
    sending.Start(Seconds(jitter->GetValue(0, 0.01)));
    sending.Stop(Seconds(end));
    sinks.push_back(DynamicCast<PacketSink>(receiving.Get(0)));
  }
  return sinks;
}

int main(int argc, char** argv)
{
  if (argc != 4)
    return 2;
  const bool fair = std::string(argv[1]) == "fair";
  const double before = std::stod(argv[2]), measured = std::stod(argv[3]);
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
  // Room for windows of some packets, so that flows are not held by their timeouts.
  Config::SetDefault("ns3::RedQueueDisc::MinTh", DoubleValue(15));
  Config::SetDefault("ns3::RedQueueDisc::MaxTh", DoubleValue(45));
  Config::SetDefault("ns3::RedQueueDisc::MaxSize", QueueSizeValue(QueueSize("100p")));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(20)));
  const unsigned nodes = take(), hosts = take(), cables = take(), routes = take(), flows = take();
  const Net net = build(nodes, hosts, cables, fair);
  route(net, routes);
  const auto sinks = send(net, flows, before + measured);
  std::vector<uint64_t> received(flows);
  Simulator::Schedule(Seconds(before), [&] {
    for (unsigned flow = 0; flow < flows; flow++)
      received[flow] = sinks[flow]->GetTotalRx();
  });
  Simulator::Stop(Seconds(before + measured));
  Simulator::Run();
  for (unsigned flow = 0; flow < flows; flow++)
    std::printf("%.9g\n", (sinks[flow]->GetTotalRx() - received[flow]) / measured);
  Simulator::Destroy();
  return 0;
}
