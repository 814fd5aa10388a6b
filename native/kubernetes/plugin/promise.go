package plugin

import (
	"fmt"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"topolane/scheduler/engine"
)

// stockPolicy is the policy of a placement that kube-scheduler chose. It keeps no promise.
const stockPolicy = "stock"

// unableAgain is the time after which an engine that could not answer is asked again.
const unableAgain = 5 * time.Second

// promise says what a group was promised that kube-scheduler's choice would not keep.
type promise int

const (
	// noPromise means that kube-scheduler may choose.
	noPromise promise = iota
	// ofRule means a promise by the policy of the configuration. The administrator chooses what happens if it cannot be
	// kept.
	ofRule
	// ofItsOwn means that the group's pods ask for the promise, so it is kept or the group waits.
	ofItsOwn
)

// isolating caches by name whether each policy isolates.
var isolating sync.Map

// isolates reports whether a policy promises isolation; true for a policy that the engine does not know.
func isolates(name string) bool {
	known, is := isolating.Load(name)
	if !is {
		policy, err := engine.NewPolicy(name, 0)
		if err != nil {
			return true
		}
		known, _ = isolating.LoadOrStore(name, policy.Isolates())
	}
	return known.(bool)
}

// promisedTo returns the promise to a pod that is placed by a policy.
func promisedTo(pod *v1.Pod, policy string) promise {
	for _, note := range []string{requiredNote, sliceNote, segmentNote} {
		if pod.Annotations[note] != "" {
			return ofItsOwn
		}
	}
	if !isolates(policy) {
		return noPromise
	}
	if pod.Annotations[policyNote] != "" || pod.Annotations[bandwidthNote] != "" {
		return ofItsOwn
	}
	return ofRule
}

// promised returns the promise to a group: isolation, or that the group or its parts lie in one group of nodes. Its
// PodGroup may require this too.
func (g *group) promised() promise {
	if strings.HasPrefix(g.asked.within, "required:") {
		return ofItsOwn
	}
	return promisedTo(g.template, g.asked.policy)
}

// mayBeStockIfUnable reports whether kube-scheduler may choose for a group while the engine cannot answer.
func (p *plugin) mayBeStockIfUnable(kept promise) bool {
	return kept == noPromise || kept == ofRule && p.args.WhenUnable == stock
}

// stockRule returns why kube-scheduler chooses for a group; err is nil if the policy refuses the group.
func stockRule(err error) string {
	if err != nil {
		return ofUnable
	}
	return ofRefusal
}

// mayBeStockIfRefused reports whether kube-scheduler may choose for a group that the policy refuses.
func (p *plugin) mayBeStockIfRefused(g *group) bool {
	return p.args.WhenRefused == stock && g.promised() != ofItsOwn
}

// refuseUnable makes a group wait while the engine cannot answer, and asks again later.
func (p *plugin) refuseUnable(g *group, err error) *fwk.Status {
	p.logger.Error(err, "A group waits: the engine cannot answer", "group", g.key)
	if p.world.unread == nil {
		p.askAgain()
	}
	return p.refuse(g, fmt.Sprintf("group %s waits: the engine cannot answer, and the choice of kube-scheduler would not keep what %s promises: %v",
		g.key, g.asked.policy, err), &refusal{Kind: noEngine, Wanted: g.asked.size, Why: err.Error()})
}

// askAgain lets groups be asked again later even if nothing else changes, for example while the engine rests. Without a
// machine it is not needed, because a change of the nodes or of the file does this.
func (p *plugin) askAgain() {
	if p.isToAsk {
		return
	}
	p.isToAsk = true
	time.AfterFunc(max(time.Until(p.world.spent.restTill), unableAgain), func() {
		p.guarded("askAgain", Name, func() {
			p.isToAsk = false
			p.changed()
		})
	})
}

// alone returns the status of a pod that is placed without a group: it waits if it asks for something that only groups
// can be promised.
func alone(pod *v1.Pod) *fwk.Status {
	policy := pod.Annotations[policyNote]
	if policy == "" || !isolates(policy) {
		return nil
	}
	return waits("%s is %q, and the pod is in no group that this scheduler places: set %s, or remove the annotation", policyNote,
		policy, sizeNote)
}

// afterFailure returns the status of a pod whose entry point panicked: it waits if kube-scheduler's choice would break a
// promise.
func (p *plugin) afterFailure(pod *v1.Pod) *fwk.Status {
	policy := pod.Annotations[policyNote]
	if policy == "" {
		policy = p.args.Policy
	}
	if groupOf(pod) == "" || p.mayBeStockIfUnable(promisedTo(pod, policy)) {
		return nil
	}
	return waits("the plugin %s failed, and the choice of kube-scheduler would not keep what %s promises: its log has the reason", Name,
		policy)
}

// keepsOff reports whether other groups must avoid all links that this one may use, because it is isolated or its links
// are not known.
func (g *group) keepsOff() bool {
	return g.placed.LinkUse != sharedLinks
}
