package plugin

import (
	"errors"
	"strconv"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	resourcehelper "k8s.io/component-helpers/resource"

	"topolane/scheduler/engine"
)

// The metrics have the names of `topolane slurm metrics`, with the prefix topolane_kubernetes_.
const subsystem = "topolane_kubernetes"

var (
	calls = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "calls_total", StabilityLevel: metrics.ALPHA,
		Help: "Decisions about groups by how they ended (stock...: kube-scheduler chooses; wait...: the engine cannot answer)",
	}, []string{"end"})
	callSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "call_seconds", StabilityLevel: metrics.ALPHA,
		Help: "Processor time of the engine in a decision, without kube-scheduler's filters",
		// 16 us to 1 s.
		Buckets: metrics.ExponentialBuckets(16e-6, 2, 17),
	})
	planSeconds = metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: "decision_seconds", StabilityLevel: metrics.ALPHA,
		Help:    "Time of a decision about a group, with kube-scheduler's filters on all nodes",
		Buckets: metrics.ExponentialBuckets(256e-6, 2, 17),
	})
	failures = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "failures_total", StabilityLevel: metrics.ALPHA,
		Help: "Panics of the plugin that were caught, by entry point",
	}, []string{"entry"})
	preemptions = metrics.NewCounterVec(&metrics.CounterOpts{
		Subsystem: subsystem, Name: "preemptions_total", StabilityLevel: metrics.ALPHA,
		Help: "Groups that were evicted whole, by what was taken from them: room or links for a group, or room for a single pod",
	}, []string{"reason"})
	state     = &collector{}
	registers sync.Once
)

// measured registers the metrics and adds this plugin to them. The series of each profile have its name.
func (p *plugin) measured(nodes corelisters.NodeLister) {
	registers.Do(func() {
		legacyregistry.MustRegister(calls, callSeconds, planSeconds, failures, preemptions)
		for _, reason := range []string{forRoom, forLinks, forPod} {
			preemptions.WithLabelValues(reason)
		}
		for _, end := range []string{"placed", "refused", "invalid", "stock_refused", "stock_failed", "stock_slow", "wait_failed", "wait_slow"} {
			calls.WithLabelValues(end)
		}
		legacyregistry.CustomMustRegister(state)
	})
	state.lock.Lock()
	defer state.lock.Unlock()
	state.of = append(state.of, source{p, nodes})
}

// count counts a decision by its outcome.
func (p *plugin) count(refusal *engine.Refusal, err error, isStock bool, since time.Time) {
	planSeconds.Observe(time.Since(since).Seconds())
	var mend inputError
	end := "placed"
	switch {
	case errors.As(err, &mend):
		end = "invalid"
	case errors.Is(err, errResting) && isStock:
		end = "stock_slow"
	case errors.Is(err, errResting):
		end = "wait_slow"
	case err != nil && isStock:
		end = "stock_failed"
	case err != nil:
		end = "wait_failed"
	case refusal != nil && isStock:
		end = "stock_refused"
	case refusal != nil:
		end = "refused"
	}
	calls.WithLabelValues(end).Inc()
}

type source struct {
	plugin *plugin
	nodes  corelisters.NodeLister
}

// collector reads the metrics of all plugins when they are scraped.
type collector struct {
	metrics.BaseStableCollector
	lock sync.Mutex
	of   []source
}

func gauge(name, help string, labels ...string) *metrics.Desc {
	return metrics.NewDesc(subsystem+"_"+name, help, append(labels, "profile"), nil, metrics.ALPHA, "")
}

var (
	groupsDesc  = gauge("jobs", "Groups by state and policy", "state", "policy")
	refusedDesc = gauge("refused_jobs", "Waiting groups that the policy refused last, by kind of refusal", "kind")
	waitDesc    = gauge("refused_wait_seconds", "The longest wait among the refused groups, by kind of refusal", "kind")
	linksDesc   = gauge("links_owned", "Links between switches that one group has for itself")
	doubtDesc   = gauge("jobs_not_proved", "Groups that run with a pod of which nothing proves where it was placed")
	nodesDesc   = gauge("nodes", "Nodes by state", "state")
	domainDesc  = gauge("domain_nodes", "Nodes of a topology domain by state", "level", "domain", "state")
	roomDesc    = gauge("room_jobs",
		"How many more groups of a size (idle nodes) fit inside one domain of a level, each alone with the rest", "size", "level")
	gpusDesc  = gauge("gpus", "GPUs of the nodes in service")
	freeDesc  = gauge("gpus_free", "GPUs in service that no pod holds")
	limitDesc = gauge("call_limit_seconds", "Processor time that a call of the engine may take (callTimeMilliseconds)")
	all       = []*metrics.Desc{
		groupsDesc, refusedDesc, waitDesc, linksDesc, doubtDesc, nodesDesc, domainDesc, roomDesc, gpusDesc, freeDesc,
		limitDesc,
	}
)

// DescribeWithStability sends the descriptions of the metrics.
func (c *collector) DescribeWithStability(to chan<- *metrics.Desc) {
	for _, one := range all {
		to <- one
	}
}

// CollectWithStability sends the values of the metrics.
func (c *collector) CollectWithStability(to chan<- metrics.Metric) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, each := range c.of {
		profile := each.plugin.handle.ProfileName()
		report := func(desc *metrics.Desc, value float64, labels ...string) {
			to <- metrics.NewLazyConstMetric(desc, metrics.GaugeValue, value, append(labels, profile)...)
		}
		each.plugin.reportGroups(report)
		each.reportNodes(report)
		report(limitDesc, float64(each.plugin.args.CallTimeMilliseconds)/1e3)
	}
}

type reporter func(desc *metrics.Desc, value float64, labels ...string)

func (p *plugin) reportGroups(report reporter) {
	type key struct{ state, policy string }
	counted, refused, longest := map[key]float64{}, map[string]float64{}, map[string]float64{}
	for kind := range kinds {
		refused[kind], longest[kind] = 0, 0
	}
	links, doubted := 0, 0
	p.guarded("metrics", "", func() {
		for _, g := range p.groups {
			switch {
			case g.placed == nil:
				counted[key{"waiting", g.asked.policy}]++
			case g.isWhole:
				counted[key{"running", g.placed.Policy}]++
			default:
				counted[key{"placing", g.placed.Policy}]++
			}
			if g.isUnproven {
				doubted++
			}
			if g.placed != nil {
				links += len(g.placed.Links)
				continue
			}
			if g.refused == "" || g.why == nil {
				continue
			}
			refused[g.why.Kind]++
			if g.template != nil {
				longest[g.why.Kind] = max(longest[g.why.Kind], time.Since(g.template.CreationTimestamp.Time).Seconds())
			}
		}
	})
	for which, count := range counted {
		report(groupsDesc, count, which.state, which.policy)
	}
	for kind := range kinds {
		report(refusedDesc, refused[kind], kind)
		report(waitDesc, longest[kind], kind)
	}
	report(linksDesc, float64(links))
	report(doubtDesc, float64(doubted))
}

// reportNodes reports the numbers of nodes by state. A node is idle if no pod holds one of its GPUs and no pod of a job
// runs on it.
func (s source) reportNodes(report reporter) {
	nodes, err := s.nodes.List(labels.Everything())
	if err != nil {
		return
	}
	holds, busy := map[string]int64{}, map[string]bool{}
	for _, object := range s.plugin.pods.List() {
		pod, is := object.(*v1.Pod)
		if !is || pod.Spec.NodeName == "" || !isAlive(pod) {
			continue
		}
		holds[pod.Spec.NodeName] += gpusOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
		busy[pod.Spec.NodeName] = busy[pod.Spec.NodeName] || s.plugin.groupOf(pod) != ""
	}
	states := map[string]float64{"idle": 0, "busy": 0, "out_of_service": 0}
	type domain struct{ level, name string }
	domains := map[domain]map[string]float64{}
	gpus, free := int64(0), int64(0)
	for _, node := range nodes {
		there := gpusOf(node.Status.Allocatable)
		state := "idle"
		switch {
		case busy[node.Name] || holds[node.Name] > 0:
			state = "busy"
		case !inService(node):
			state = "out_of_service"
		}
		states[state]++
		if inService(node) {
			gpus, free = gpus+there, free+max(there-holds[node.Name], 0)
		}
		for key, value := range relevant(node.Labels, s.plugin.args.TopologyLabels) {
			if key == hostnameLabel {
				continue
			}
			of := domain{key, value}
			if domains[of] == nil {
				domains[of] = map[string]float64{"idle": 0, "busy": 0, "out_of_service": 0}
			}
			domains[of][state]++
		}
	}
	for state, count := range states {
		report(nodesDesc, count, state)
	}
	idle := map[string][]int{}
	for of, counted := range domains {
		for state, count := range counted {
			report(domainDesc, count, of.level, of.name, state)
		}
		idle[of.level] = append(idle[of.level], int(counted["idle"]))
	}
	for level, counts := range idle {
		for size := 1; size <= len(nodes); size *= 2 {
			fit := 0
			for _, count := range counts {
				fit += count / size
			}
			report(roomDesc, float64(fit), strconv.Itoa(size), level)
		}
	}
	report(gpusDesc, float64(gpus))
	report(freeDesc, float64(free))
}

func gpusOf(amounts v1.ResourceList) int64 {
	nvidia, amd := amounts["nvidia.com/gpu"], amounts["amd.com/gpu"]
	return nvidia.Value() + amd.Value()
}

// inService reports whether a node accepts new pods: it is ready and not cordoned.
func inService(node *v1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == v1.NodeReady {
			return condition.Status == v1.ConditionTrue && !node.Spec.Unschedulable
		}
	}
	return false
}
