// Package plugin places groups of pods in kube-scheduler: see docs/explanation/kubernetes.md.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"topolane/scheduler/engine"
)

// Name is the plugin's name in KubeSchedulerConfiguration.
const Name = "Topolane"

// plugin places groups. The lock protects all fields except handle, args and client, which do not change.
type plugin struct {
	handle   framework.Framework
	args     *args
	client   dynamic.Interface
	pods     cache.Indexer
	requests noderesources.ResourceRequestsOptions
	logger   klog.Logger
	synced   []cache.InformerSynced
	single   *single
	// evictPod deletes a pod as kube-scheduler's preemption does.
	evictPod func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) error

	// key signs placements. boundFor has the group of each bound pod, by the pod's UID.
	key      signingKey
	boundFor sync.Map

	lock   sync.Mutex
	groups map[groupKey]*group
	world  *world
	// memos has a memo for each shape of pods.
	memos  map[string]memo
	lastID uint64
	// generation counts changes after which a refused group may have a place.
	generation atomic.Uint64
	// keptOff is true if pods without groups were excluded from the room of groups since such pods were last woken.
	keptOff atomic.Bool
	// isToAsk is true while a timer is set after which groups are asked again.
	isToAsk bool
}

var (
	_ fwk.PreEnqueuePlugin  = &plugin{}
	_ fwk.PreFilterPlugin   = &plugin{}
	_ fwk.FilterPlugin      = &plugin{}
	_ fwk.PostFilterPlugin  = &plugin{}
	_ fwk.ReservePlugin     = &plugin{}
	_ fwk.PermitPlugin      = &plugin{}
	_ fwk.BindPlugin        = &plugin{}
	_ fwk.EnqueueExtensions = &plugin{}
)

// New makes the plugin for a profile.
func New(ctx context.Context, given runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	if err := engine.CheckVersion(); err != nil {
		return nil, err
	}
	args, err := readArgs(given)
	if err != nil {
		return nil, err
	}
	profile, is := handle.(framework.Framework)
	if !is {
		return nil, errors.New("the handle of this kube-scheduler cannot run the other plugins")
	}
	// The scheduler may send protobuf to the API server, which custom resources do not support.
	config := rest.CopyConfig(handle.KubeConfig())
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	core := handle.SharedInformerFactory().Core().V1()
	p := &plugin{
		handle: profile, args: args, client: client,
		requests: noderesources.ResourceRequestsOptions{EnablePodLevelResources: true},
		logger:   klog.LoggerWithName(klog.FromContext(ctx), Name),
		groups:   map[groupKey]*group{}, world: newWorld(args), memos: map[string]memo{},
	}
	if err := p.readKey(ctx); err != nil {
		return nil, err
	}
	if err := p.checkMachine(ctx); err != nil {
		return nil, err
	}
	p.measured(core.Nodes().Lister())
	p.world.warn = p.warn
	go p.follow(ctx)
	if p.single, err = p.newSingle(ctx); err != nil {
		return nil, err
	}
	return p, p.watch(core)
}

// Name returns the plugin's name.
func (p *plugin) Name() string { return Name }

// guarded runs an entry point. It returns false after a panic, which leaves the pod to kube-scheduler unless that breaks
// a promise.
func (p *plugin) guarded(entry, name string, body func()) (isDone bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	defer func() {
		if failure := recover(); failure != nil {
			p.logger.Error(fmt.Errorf("%v", failure), "The plugin failed", "entry", entry, "of", name,
				"stack", string(debug.Stack()))
			p.world.isStale = true
			failures.WithLabelValues(entry).Inc()
		}
	}()
	body()
	return true
}

// PreFilter chooses the nodes of a whole group when its first pod arrives, and returns the node of each pod.
func (p *plugin) PreFilter(
	ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo,
) (result *fwk.PreFilterResult, status *fwk.Status) {
	if isAsking(state) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	// Do not wait under the lock: the handlers that record running pods need it.
	if groupOf(pod) != "" && !cache.WaitForCacheSync(ctx.Done(), p.synced...) {
		return nil, fwk.NewStatus(fwk.Error, "the pods that run are not known yet")
	}
	if groupOf(pod) == "" {
		status = alone(pod)
	}
	ahead := p.readAhead(ctx, pod)
	isDone := p.guarded("PreFilter", pod.Name, func() {
		state.Write(keeping, p.reservedFor(pod))
		if key := groupOf(pod); key != "" {
			if result, status = p.nodeOf(ctx, key, pod, ahead); status == nil {
				state.Write(seating, seated{p.groups[key], result})
			}
		}
	})
	if !isDone {
		return nil, p.afterFailure(pod)
	}
	return result, status
}

// PreFilterExtensions returns nil: there are none.
func (p *plugin) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// nodeOf returns the node of a group's pod.
func (p *plugin) nodeOf(ctx context.Context, key groupKey, pod *v1.Pod, ahead *reading) (*fwk.PreFilterResult, *fwk.Status) {
	p.expire()
	g := p.groups[key]
	if g != nil && g.placed != nil && !g.isWhole && g.tried[pod.UID] && g.seatOf(pod.UID) < 0 {
		p.drop(g, "another member of the group found no node")
		g = nil
	}
	if g == nil || g.placed == nil {
		var status *fwk.Status
		if g, status = p.plan(ctx, key, pod, ahead); g == nil {
			return nil, status
		}
	}
	if g.isLeaving {
		return nil, waits("group %s was preempted, and is placed again when its pods have ended", key)
	}
	if left := p.awaited(g); left > 0 {
		return nil, waits("group %s has a place when %d preempted pods have ended", key, left)
	}
	seat := g.chooseSeat(pod)
	if g.isWhole {
		var status *fwk.Status
		if seat, status = p.settle(ctx, g, pod, ahead); status != nil {
			return nil, status
		}
	} else if seat < 0 {
		return nil, waits("all %d places of group %s are taken", len(g.seats), key)
	} else {
		g.tried[pod.UID] = true
	}
	if g.isStock || g.placed.Nodes[seat] == "" {
		return nil, nil
	}
	return &fwk.PreFilterResult{NodeNames: sets.New(g.placed.Nodes[seat])}, nil
}

// seated is the group with which a pod is placed in this cycle, and the chosen node; nil: kube-scheduler chooses.
type seated struct {
	group *group
	nodes *fwk.PreFilterResult
}

// Clone returns the same value for the cycle state, because it never changes.
func (s seated) Clone() fwk.StateData { return s }

const seating fwk.StateKey = Name + "/seating"

func seatedIn(state fwk.CycleState) (seated, bool) {
	found, _ := state.Read(seating)
	s, is := found.(seated)
	return s, is
}

// waits returns a status with a sentence for the pod's Event.
func waits(format string, given ...any) *fwk.Status {
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf(format, given...))
}

// Filter excludes other pods from room that is kept for members of a group.
func (p *plugin) Filter(_ context.Context, state fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) *fwk.Status {
	if isAsking(state) {
		return nil
	}
	// kube-scheduler tries a nominated node without regard to PreFilter's result.
	if s, is := seatedIn(state); is && s.nodes != nil && !s.nodes.NodeNames.Has(info.Node().Name) {
		return fwk.NewStatus(fwk.Unschedulable, "the group has another place for the pod")
	}
	found, _ := state.Read(keeping)
	kept, _ := found.(reserved)
	if len(kept[info.Node().Name]) > 0 && p.fits(pod, nil, withReserved(info, kept), 1) == 0 {
		if groupOf(pod) == "" {
			p.keptOff.Store(true)
		}
		return fwk.NewStatus(fwk.Unschedulable, "the room is kept for a group of pods")
	}
	return nil
}

// Reserve gives a pod its seat.
func (p *plugin) Reserve(_ context.Context, state fwk.CycleState, pod *v1.Pod, node string) (status *fwk.Status) {
	isDone := p.guarded("Reserve", pod.Name, func() {
		g := p.groups[p.groupOf(pod)]
		if s, is := seatedIn(state); is && s.group != g {
			status = fwk.NewStatus(fwk.Unschedulable, "the group has given its place back")
			return
		}
		if g == nil || g.placed == nil {
			return
		}
		seat := g.chooseSeat(pod)
		if seat < 0 || g.placed.Nodes[seat] != "" && g.placed.Nodes[seat] != node {
			status = fwk.NewStatus(fwk.Unschedulable, "the place of the pod in its group has changed")
			return
		}
		isNew := g.placed.Nodes[seat] == ""
		g.seats[seat], g.placed.Nodes[seat] = pod.UID, node
		if isNew && g.isWhole {
			p.world.hold(p.logger, g)
		}
	})
	if !isDone {
		return p.afterFailure(pod)
	}
	return status
}

// Unreserve takes the seat back. If the group is not whole, it loses all seats.
func (p *plugin) Unreserve(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) {
	p.guarded("Unreserve", pod.Name, func() {
		g := p.groups[p.groupOf(pod)]
		switch {
		case g == nil || g.bound[pod.UID] || !g.leave(pod.UID):
		case !g.isWhole:
			p.drop(g, "another member of the group found no node")
		case g.isLeaving && g.taken() == 0:
			p.forget(g)
		case g.taken() == 0:
			// No member was bound, so all wait for each other again. kube-scheduler may have tried the group as a whole, and will
			// reserve and permit each pod once more.
			g.isWhole, g.planned, g.tried = false, time.Now(), map[types.UID]bool{}
		default:
			p.keepForAWhile(g)
		}
	})
}

// Permit makes pods wait until all members of their group have nodes.
func (p *plugin) Permit(ctx context.Context, state fwk.CycleState, pod *v1.Pod, _ string) (status *fwk.Status, timeout time.Duration) {
	isDone := p.guarded("Permit", pod.Name, func() {
		g := p.groups[p.groupOf(pod)]
		if g == nil || g.placed == nil || g.isWhole {
			return
		}
		if g.taken() < len(g.seats) {
			if g.taken() == 1 && !state.IsPodGroupSchedulingCycle() {
				p.wake(g.key)
			}
			status, timeout = fwk.NewStatus(fwk.Wait, "waits for the other members of its group"), p.args.timeout()
			return
		}
		p.begin(g)
	})
	if !isDone {
		return p.afterFailure(pod), 0
	}
	return status, timeout
}

// begin lets the pods of a group be bound.
func (p *plugin) begin(g *group) {
	g.isWhole = true
	if g.isStock {
		p.world.hold(p.logger, g)
	}
	if len(g.seats) < g.asked.most {
		p.wake(g.key)
	}
	for _, member := range g.seats {
		if waiting := p.handle.GetWaitingPod(member); waiting != nil {
			waiting.Allow(Name)
		}
	}
}

// Bind binds a member and writes the group's place on it in one call, because after a restart this is all that is known.
func (p *plugin) Bind(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	var notes map[string]string
	var err error
	p.guarded("Bind", pod.Name, func() {
		if g := p.groups[p.groupOf(pod)]; g != nil && g.placed != nil && g.seatOf(pod.UID) >= 0 {
			if notes, err = g.placed.notes(g.seatOf(pod.UID)); err == nil {
				notes[proofNote] = p.key.proof(g.key, pod.UID, notes[placementNote])
				p.boundFor.Store(pod.UID, g.key)
			}
		}
	})
	if notes == nil || err != nil {
		return fwk.NewStatus(fwk.Skip)
	}
	binding := &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, Annotations: notes,
		},
		Target: v1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := p.bind(ctx, binding); err != nil {
		// If the pod was bound nevertheless, its annotation proves it.
		p.boundFor.Delete(pod.UID)
		return fwk.AsStatus(err)
	}
	return nil
}

func (p *plugin) bind(ctx context.Context, binding *v1.Binding) error {
	cacher := p.handle.APICacher()
	if cacher == nil {
		return p.handle.ClientSet().CoreV1().Pods(binding.Namespace).Bind(ctx, binding, metav1.CreateOptions{})
	}
	done, err := cacher.BindPod(binding)
	if err == nil {
		err = cacher.WaitOnFinish(ctx, done)
	}
	return err
}
