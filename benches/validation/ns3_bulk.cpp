// The rates of endless TCP flows, or the times of jobs that exchange messages, packet by packet under ns-3.
//
// Arguments: "rates", shared or fair, the seconds before measuring and the seconds measured; or "jobs", shared
// or fair, the number of jobs and the iterations that each must end. Standard input:
// SWITCHES-AND-HOSTS HOSTS CABLES ROUTES FLOWS (the hosts are the first numbers), the two ends and
// the bytes per second of every cable, then routes (at, host to reach, cable to take), then flows
// (from, to; of jobs also job and bytes). Standard output: the bytes per second of payload of every flow,
// or the seconds per iteration of every job.
//
// A host has one cable. shared: one queue at every port, packets dropped early and at random (RED);
// where only the last are dropped, flows of one round-trip time fall into step and one of two may
// starve. fair: queues by flow (FQ-CoDel), which is what max-min fairness takes for granted.
//
// A job starts an iteration when all its messages of the last one have arrived, and its neighbours do the same.
// Its packets are never dropped (shared is then first in, first out), and no window holds them back.
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

static Net build(unsigned nodes, unsigned hosts, unsigned cables, const char* queue)
{
  Net net;
  net.nodes.Create(nodes);
  net.address.resize(hosts);
  Ipv4StaticRoutingHelper by_table;
  InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.SetRoutingHelper(by_table);
  stack.Install(net.nodes);
  Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
  TrafficControlHelper queues;
  queues.SetRootQueueDisc(queue);
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

struct Job {
  std::vector<std::pair<Ptr<Socket>, unsigned>> messages;
  uint64_t bytes = 0, left = 0;
  unsigned ended = 0;
  Time last;
};

struct Jobs {
  std::vector<Job> all;
  unsigned iterations, unended;
};

static const Time BEGIN = MilliSeconds(10);

static void start(Job& job)
{
  job.left = job.bytes;
  for (const auto& [socket, bytes] : job.messages)
    if (socket->Send(Create<Packet>(bytes)) != static_cast<int>(bytes))
      throw std::runtime_error("a message does not fit into the buffer of its sender");
}

static void arrive(Jobs* jobs, Job* job, Ptr<const Packet> packet, const Address&)
{
  job->left -= packet->GetSize();
  if (job->left > 0)
    return;
  job->last = Simulator::Now();
  if (++job->ended == jobs->iterations && --jobs->unended == 0)
    Simulator::Stop();
  start(*job);
}

static void exchange(const Net& net, unsigned flows, Jobs& jobs)
{
  for (unsigned flow = 0; flow < flows; flow++) {
    const unsigned from = take(), to = take();
    Job& job = jobs.all.at(take());
    const unsigned bytes = take();
    const uint16_t port = 1000 + flow;
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    auto receiving = sink.Install(net.nodes.Get(to));
    receiving.Get(0)->TraceConnectWithoutContext("Rx", MakeBoundCallback(&arrive, &jobs, &job));
    auto socket = Socket::CreateSocket(net.nodes.Get(from), TcpSocketFactory::GetTypeId());
    Simulator::Schedule(BEGIN / 2, [=, &net] {
      socket->Bind();
      socket->Connect(InetSocketAddress(net.address.at(to), port));
    });
    job.messages.emplace_back(socket, bytes);
    job.bytes += bytes;
  }
  for (Job& job : jobs.all)
    Simulator::Schedule(BEGIN, &start, std::ref(job));
  Simulator::Run();
  for (const Job& job : jobs.all)
    std::printf("%.9g\n", (job.last - BEGIN).GetSeconds() / job.ended);
}

static void endless(const Net& net, unsigned flows, double before, double measured)
{
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
}

int main(int argc, char** argv)
{
  if (argc != 5)
    return 2;
  const bool jobs = std::string(argv[1]) == "jobs", fair = std::string(argv[2]) == "fair";
  Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
  Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
  Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
  // Room for windows of some packets, so that flows are not held by their timeouts.
  Config::SetDefault("ns3::RedQueueDisc::MinTh", DoubleValue(15));
  Config::SetDefault("ns3::RedQueueDisc::MaxTh", DoubleValue(45));
  Config::SetDefault("ns3::RedQueueDisc::MaxSize", QueueSizeValue(QueueSize("100p")));
  Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(jobs ? Seconds(100) : MilliSeconds(20)));
  if (jobs) {
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(1000));
    Config::SetDefault("ns3::FqCoDelQueueDisc::MaxSize", QueueSizeValue(QueueSize("1000000p")));
    Config::SetDefault("ns3::FqCoDelQueueDisc::Target", StringValue("1000s"));
    Config::SetDefault("ns3::FqCoDelQueueDisc::Flows", UintegerValue(1 << 16));
    Config::SetDefault("ns3::FifoQueueDisc::MaxSize", QueueSizeValue(QueueSize("1000000p")));
  }
  const unsigned nodes = take(), hosts = take(), cables = take(), routes = take(), flows = take();
  const char* one_queue = jobs ? "ns3::FifoQueueDisc" : "ns3::RedQueueDisc";
  const Net net = build(nodes, hosts, cables, fair ? "ns3::FqCoDelQueueDisc" : one_queue);
  route(net, routes);
  if (jobs) {
    const unsigned number = std::stoul(argv[3]), iterations = std::stoul(argv[4]);
    Jobs all{std::vector<Job>(number), iterations, number};
    exchange(net, flows, all);
  } else {
    endless(net, flows, std::stod(argv[3]), std::stod(argv[4]));
  }
  Simulator::Destroy();
  return 0;
}
